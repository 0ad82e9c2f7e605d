"""Reads any JSON text into what every layer behind this one can carry. Pure; standard library only.

JSON may say what Python, Pydantic or UTF-8 cannot: half of a surrogate pair, a number beyond every bound, a thousand
arrays in each other. None of that is a reason to leave a request without its answer. So it is made plain here, once:
half a pair becomes U+FFFD, such a number an infinity, and what lies too deep `null`. No tool takes any of the last two.
"""

from __future__ import annotations

import json
import re
from array import array
from itertools import accumulate
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 128
"""Of nested arrays and objects. No tool needs ten; parsers of the next layer end somewhere above a hundred."""
MAX_DIGITS: Final = 4300
"""Of a whole number that is read as one. Python's own limit, because the time that a conversion takes is quadratic."""


class Read(NamedTuple):
    """`plain` may go everywhere; `original` still has halves of surrogate pairs, if the text had any."""

    plain: Any
    original: Any


class Huge(float):
    """A whole number of too many digits: an infinity that remembers how it was written."""

    digits: str


def read(text: str) -> Read:
    """What a JSON text says. Raises `ValueError` if it is none, `NaN` and `Infinity` included."""
    shallow = _shallow(text)
    original = _DECODER.decode(shallow)
    whole = _ESCAPE.sub(_whole, shallow) if _HALF_MAYBE.search(shallow) else shallow
    return Read(original if whole == shallow else _DECODER.decode(whole), original)


def has_half(text: str) -> bool:
    """Whether the text holds half of a surrogate pair, which UTF-8 cannot carry."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def depths(structure: bytes, before: int) -> list[int]:
    """How deep it is before and after each bracket of a piece without texts; `before` is how deep it begins."""
    return list(accumulate(array("b", structure.translate(_STEPS, _NO_BRACKETS)), initial=before))


_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # signed: one deeper, one less deep
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _huge(digits: str) -> Huge:
    number = Huge("-inf" if digits.startswith("-") else "inf")
    number.digits = digits
    return number


def _whole_number(digits: str) -> int | Huge:
    if len(digits) > MAX_DIGITS:
        return _huge(digits)
    try:
        return int(digits)
    except ValueError:  # an environment may lower Python's limit
        return _huge(digits)


def _refuse_constant(_name: str) -> float:
    raise ValueError


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_whole_number)

_HALF_MAYBE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]..")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)"
)
"""One escape, or two that make one character, so that what follows an escaped backslash is not taken for one."""


def _whole(escape: re.Match[str]) -> str:
    return r"\ufffd" if _HALF.fullmatch(escape[0]) else escape[0]


_TEXT: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_MARK: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
"""A whole text, whose brackets mean nothing, or a bracket."""
_CLOSES: Final = {"]": "[", "}": "{"}


def _shallow(text: str) -> str:
    """The text with `null` for what is deeper than allowed. Of what is left out, only the brackets are checked."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return text
    if max(depths(_TEXT.sub("", text).encode("ascii", "ignore"), 0)) <= MAX_DEPTH:
        return text
    kept: list[str] = []
    opened: list[str] = []
    start = 0
    for mark in _MARK.finditer(text):
        bracket = mark[0]
        if bracket in _CLOSES:
            if not opened or opened.pop() != _CLOSES[bracket]:
                raise ValueError
            if len(opened) == MAX_DEPTH:
                start = mark.end()
        elif bracket in "[{":
            if len(opened) == MAX_DEPTH:
                kept += (text[start : mark.start()], "null")
            opened.append(bracket)
    if opened:
        raise ValueError
    return "".join([*kept, text[start:]])
