"""The names that somebody who misspelt one may have meant. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_NAMES: Final = 3
_LIKENESS: Final = 0.65
_MAX_CHARACTERS: Final = 256
"""Longer words are nobody's spelling, and comparing them takes long."""


def nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that begin with `word`, else those that are spelt most like it, the best first; none when none is.

    Neither capitals nor the dashes of an option count, nor does the group that a command of several words is in.
    """
    from difflib import get_close_matches  # for those who misspell, not for everybody who starts the program

    spelt: dict[str, str] = {}
    for name in names:
        spelt.setdefault(_plain(name.rpartition(" ")[2]), name)
    plain = _plain(word[:_MAX_CHARACTERS])
    begun = [one for one in spelt if plain and one.startswith(plain)]
    alike = begun or get_close_matches(plain, spelt, n=_MAX_NAMES, cutoff=_LIKENESS)
    return tuple(dict.fromkeys(spelt[one] for one in alike))[:_MAX_NAMES]


def _plain(name: str) -> str:
    return name.lower().lstrip("-")
