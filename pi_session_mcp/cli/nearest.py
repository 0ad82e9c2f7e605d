"""The names that somebody who misspelt one may have meant. Pure."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_NAMES: Final = 3
_MAX_CHARACTERS: Final = 256
"""Longer words are nobody's spelling, and comparing them takes long."""


def nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that are spelt most like `word`, the best first; none when none is."""
    spelt = {name.lower(): name for name in names}
    alike = get_close_matches(word.lower()[:_MAX_CHARACTERS], spelt, n=_MAX_NAMES, cutoff=0.6)
    return tuple(spelt[one] for one in alike)
