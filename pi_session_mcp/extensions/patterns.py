"""The patterns that a manifest may use to name its extensions: `*`, `?` and `**`. Pure.

They mean the same as to Pi. Matching takes no more time than the length of the pattern times that of the path.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from pi_session_mcp.extensions.outcomes import Condition, Unusable

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY_DEPTH: Final = "**"
_WILD: Final = frozenset("*?")
_OVERRIDES: Final = ("!", "+", "-")
_UNSUPPORTED: Final = frozenset("[]{}()\\\0")
"""Characters of classes, alternatives and escapes, which Pi knows and this module does not."""
_READ_OTHERWISE: Final = ("~", "file:", "!", "#")
"""Beginnings that mean something else to Pi than a name in the package."""


def is_override(entry: str) -> bool:
    """Whether an entry removes from what the others name (`!`, `-`) or adds again (`+`)."""
    return entry.startswith(_OVERRIDES)


def is_glob(entry: str) -> bool:
    """Whether Pi takes this entry for a pattern."""
    return not _WILD.isdisjoint(entry)


def segments_of(entry: str) -> list[str]:
    """The parts of a relative path or pattern. Raises `Unusable` if it leads out of its package."""
    segments = [segment for segment in entry.split("/") if segment not in {"", "."}]
    if entry.startswith("/") or not segments or ".." in segments:
        raise Unusable(Condition.FORM_UNSUPPORTED)
    return segments


def glob_segments(entry: str) -> list[str]:
    """The parts of a pattern. Raises `Unusable` for a kind of pattern that this module does not know."""
    written = entry.removeprefix("./").removesuffix("/").split("/")
    if not _UNSUPPORTED.isdisjoint(entry) or not {"", "."}.isdisjoint(written):
        raise Unusable(Condition.FORM_UNSUPPORTED)
    return segments_of(entry)


def apply_overrides(files: Sequence[str], overrides: Sequence[str], root: str) -> list[str]:
    """The `files`, relative to `root`, that remain after the overrides, in Pi's order. Raises `Unusable`."""
    without = [_checked(entry) for entry in overrides if entry.startswith("!")]
    given_back = {_exact(entry) for entry in overrides if entry.startswith("+")}
    taken = {_exact(entry) for entry in overrides if entry.startswith("-")}

    def is_left(file: str) -> bool:
        spellings = (file, f"{root}/{file}")
        if not taken.isdisjoint(spellings):
            return False
        return not given_back.isdisjoint(spellings) or not any(_excludes(one, file, root) for one in without)

    return [file for file in files if is_left(file)]


def _checked(entry: str) -> str:
    pattern = entry[1:]
    if not _UNSUPPORTED.isdisjoint(pattern) or pattern.startswith(_READ_OTHERWISE):
        raise Unusable(Condition.FORM_UNSUPPORTED)
    return pattern


def _exact(entry: str) -> str:
    path = entry[1:].removeprefix("./")
    if path.startswith(_READ_OTHERWISE[:2]):
        raise Unusable(Condition.FORM_UNSUPPORTED)
    return path


def _excludes(pattern: str, file: str, root: str) -> bool:
    """Whether a pattern matches a file: Pi compares it with the relative path, the name alone, and the whole path."""
    written = pattern.split("/")
    parts = [part for part, next_one in zip_longest(written, written[1:]) if not part == next_one == ANY_DEPTH]
    spellings = (file, file.rpartition("/")[2], f"{root}/{file}")
    return any(_matches(parts, spelling.split("/")) for spelling in spellings)


def _matches(pattern: list[str], path: list[str]) -> bool:
    """Whether the parts of a pattern match all parts of a path. `**` matches any number of visible parts."""
    reached = {0}  # how many parts of the path may be matched so far
    for place, part in enumerate(pattern):
        if part != ANY_DEPTH:
            reached = {used + 1 for used in reached if used < len(path) and matches_name(part, path[used])}
            continue
        farther = {end for used in reached for end in _visible_ends(path, used)}
        is_last = place == len(pattern) - 1
        reached = farther - reached if is_last and place > 0 else farther
    return len(path) in reached


def _visible_ends(path: list[str], used: int) -> range:
    """How many parts may be matched when any number of visible parts follows."""
    hidden = next((place for place in range(used, len(path)) if path[place].startswith(".")), len(path))
    return range(used, hidden + 1)


def matches_name(pattern: str, name: str) -> bool:
    """Whether one part of a pattern matches one name. A wildcard does not match a leading dot."""
    if pattern[:1] in _WILD and name.startswith("."):
        return False
    place = at = mark = 0
    star = -1
    while place < len(name):
        if at < len(pattern) and (pattern[at] == "?" or (pattern[at] == name[place] and pattern[at] != "*")):
            at, place = at + 1, place + 1
        elif at < len(pattern) and pattern[at] == "*":
            star, mark, at = at, place, at + 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            return False
    return not pattern[at:].strip("*")
