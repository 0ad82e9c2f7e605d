"""Strict JSON, read once into an immutable tree. Pure.

The standard decoder is fast, but it is recursive, accepts `NaN`, and takes the last of two equal keys. So the depth of
the text is measured before, and objects are lists of members until it is known that no key is there twice.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum, auto
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeAlias

MAX_NESTING: Final = 32
MAX_NUMBER_CHARACTERS: Final = 64

Tree: TypeAlias = "dict[str, Tree] | tuple[Tree, ...] | str | int | float | bool | None"
Path: TypeAlias = "tuple[str | int, ...]"

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_STRING: Final = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'  # possessive, so that hostile text cannot make it remember or retry
_STRINGS: Final = re.compile(_STRING, re.DOTALL)
_STRING_OR_BRACKET: Final = re.compile(rf"{_STRING}|([\[{{])|([\]}}])", re.DOTALL)
_STRING_OR_CONSTANT: Final = re.compile(rf"{_STRING}|(NaN|-?Infinity)", re.DOTALL)
_ALL_BUT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class Fault(Enum):
    """What can be wrong with a text. The configuration has a rule of the same name for each."""

    NOT_UTF8 = auto()
    NOT_JSON = auto()
    TOO_DEEP = auto()
    NUMBER_TOO_LONG = auto()
    LONE_SURROGATE = auto()
    DUPLICATE_KEY = auto()


@dataclass(frozen=True, slots=True)
class TextFlaw:
    """The text has `fault` at `line` and `column`, both counted from 1."""

    fault: Fault
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class TreeFlaw:
    """The value or key at `path` has `fault`."""

    fault: Fault
    path: Path


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole document. Dictionaries are in document order, and arrays are tuples."""

    tree: Tree


class _Members(tuple[tuple[str, Any], ...]):
    """An object as the decoder found it. It is a tuple, because arrays come as lists."""

    __slots__ = ()


class _TooLong:
    """In place of a number that is too long to be converted."""


class _NotANumberError(Exception):
    """The decoder met a constant that JSON does not have."""


class _FlawError(Exception):
    """Its path grows on the way out, so that a tree without flaws costs nothing more."""

    def __init__(self, fault: Fault, path: Path = ()) -> None:
        super().__init__(fault)
        self.flaw = TreeFlaw(fault, path)

    def inside(self, step: str | int) -> _FlawError:
        """The same flaw, seen from one level further out."""
        return _FlawError(self.flaw.fault, (step, *self.flaw.path))


def parse(text: bytes) -> Parsed | TextFlaw | TreeFlaw:
    """Read one document, or say what is wrong first.

    Takes time and memory linear in the length of `text`, which the caller bounds.
    """
    decoded = _decode(text)
    if isinstance(decoded, TextFlaw):
        return decoded
    members = _members(decoded)
    if isinstance(members, TextFlaw):
        return members
    try:
        return Parsed(_settle(members))
    except _FlawError as error:
        return error.flaw


def _decode(text: bytes) -> str | TextFlaw:
    body = text.removeprefix(_BYTE_ORDER_MARK)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        return _flaw_after(Fault.NOT_UTF8, body[: error.start].decode("utf-8"))


def _members(text: str) -> Any | TextFlaw:
    if _nests_too_deep(text):
        return _flaw_after(Fault.TOO_DEEP, text[: _offset_of_excess(text)])
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return _flaw_after(Fault.NOT_JSON, text[: error.pos])
    except _NotANumberError:
        return _flaw_after(Fault.NOT_JSON, text[: _offset_of_constant(text)])


def _nests_too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_NESTING:
        return False
    brackets = _STRINGS.sub("", text).encode().translate(None, _ALL_BUT_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > MAX_NESTING


def _offset_of_excess(text: str) -> int:
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        if depth > MAX_NESTING:
            return found.start()
    raise AssertionError("asked only when the text nests too deep")


def _offset_of_constant(text: str) -> int:
    return next(found.start() for found in _STRING_OR_CONSTANT.finditer(text) if found[1])


def _flaw_after(fault: Fault, before: str) -> TextFlaw:
    return TextFlaw(fault, line=before.count("\n") + 1, column=len(before) - (before.rfind("\n") + 1) + 1)


def _integer(digits: str) -> int | _TooLong:
    return int(digits) if len(digits) <= MAX_NUMBER_CHARACTERS else _TooLong()


def _float(digits: str) -> float | _TooLong:
    return float(digits) if len(digits) <= MAX_NUMBER_CHARACTERS else _TooLong()


def _constant(_: str) -> NoReturn:
    raise _NotANumberError


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Members, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _settle(value: Any) -> Tree:
    """Make arrays tuples and objects dictionaries, in document order. The depth of nesting bounds the recursion."""
    if isinstance(value, str):
        _refuse_surrogates(value)
    elif isinstance(value, _Members):
        return _settle_object(value)
    elif isinstance(value, list):
        return _settle_array(value)
    elif isinstance(value, _TooLong):
        raise _FlawError(Fault.NUMBER_TOO_LONG)
    settled: Tree = value
    return settled


def _settle_array(items: list[Any]) -> tuple[Tree, ...]:
    for index, item in enumerate(items):
        try:
            items[index] = _settle(item)
        except _FlawError as error:
            raise error.inside(index) from None
    return tuple(items)


def _settle_object(members: _Members) -> dict[str, Tree]:
    settled: dict[str, Tree] = {}
    for key, value in members:
        try:
            _refuse_key(key, settled)
            settled[key] = _settle(value)
        except _FlawError as error:
            raise error.inside(key) from None
    return settled


def _refuse_key(key: str, earlier: dict[str, Tree]) -> None:
    _refuse_surrogates(key)
    if key in earlier:
        raise _FlawError(Fault.DUPLICATE_KEY)


def _refuse_surrogates(text: str) -> None:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _FlawError(Fault.LONE_SURROGATE)
