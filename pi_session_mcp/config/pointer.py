"""Places in the operator's file: which of them comes first, and how a place may be shown. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from pi_session_mcp.config.rules import Rule
    from pi_session_mcp.terms.strict_json import Path, Tree

ALIAS_PATTERN: Final = "[a-z][a-z0-9_-]{0,63}"

_ALIAS: Final = re.compile(ALIAS_PATTERN)
_HIDDEN: Final = "?"


class Breach(NamedTuple):
    """`rule` is broken at `path`, which may end in a field that is missing."""

    path: Path
    rule: Rule


def show(path: Path, known_fields: AbstractSet[str]) -> str:
    """The RFC 6901 pointer to `path`, with `?` for a key that is neither a valid alias nor a known field."""
    return "".join(f"/{_shown(step, known_fields)}" for step in path)


def _shown(step: str | int, known_fields: AbstractSet[str]) -> str:
    if isinstance(step, int):
        return str(step)
    return step if step in known_fields or _ALIAS.fullmatch(step) else _HIDDEN


def first_in_document(tree: Tree, breaches: Sequence[Breach]) -> Breach:
    """The breach that a reader of the file meets first. That of an object comes before those inside it.

    A missing field is a breach of its object. Of two breaches at one place, the first given is taken. Takes time linear
    in `tree` and `breaches`, which must not be empty.
    """
    depth = 0
    while True:
        own = [breach for breach in breaches if _ends_at(tree, breach.path[depth:])]
        if own:
            return own[0]
        steps = {breach.path[depth] for breach in breaches}
        step, tree = next((step, inside) for step, inside in _inside(tree) if step in steps)
        breaches = [breach for breach in breaches if breach.path[depth] == step]
        depth += 1


def _ends_at(tree: Tree, rest: Path) -> bool:
    return not rest or (isinstance(tree, dict) and rest[0] not in tree)


def _inside(tree: Tree) -> Iterable[tuple[str | int, Tree]]:
    if isinstance(tree, dict):
        return tree.items()
    return enumerate(tree) if isinstance(tree, tuple) else ()
