"""The names that a misspelt name may stand for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_NAMES: Final = 3
_LIKENESS: Final = 0.65
_MAX_CHARACTERS: Final = 256
"""A longer word is no misspelt name, and comparing it takes long."""


def nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that begin with `word`; if there are none, those with the most similar spelling, the best first.

    Capitals, the dashes of an option, and the group before a command of several words make no difference.
    """
    from difflib import get_close_matches  # only a misspelt word needs it, and the import takes time

    spelt: dict[str, str] = {}
    for name in names:
        spelt.setdefault(_plain(name.rpartition(" ")[2]), name)
    plain = _plain(word[:_MAX_CHARACTERS])
    begun = [one for one in spelt if plain and one.startswith(plain)]
    alike = begun or get_close_matches(plain, spelt, n=_MAX_NAMES, cutoff=_LIKENESS)
    return tuple(dict.fromkeys(spelt[one] for one in alike))[:_MAX_NAMES]


def _plain(name: str) -> str:
    return name.lower().lstrip("-")
