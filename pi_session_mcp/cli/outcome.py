"""What a command found, before anyone decided how to show it. Pure.

A command answers with an `Outcome`; `render` turns it into text for a person or into the JSON report. Both are made
from the same object, so a person is never told what the report would not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pi_session_mcp.errors import ExitStatus

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"

SCHEMA_VERSION: Final = 1
"""Version of the JSON reports' shape; raised when a member is removed or changes its meaning."""


class Mark(StrEnum):
    """The state of one line; shown as a symbol beside the line's word, so that it survives without colour."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Line:
    """One finding: a symbol, a word for the state, and what it is about."""

    mark: Mark
    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, aligned below the line that they belong to."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text that keeps its line breaks, for example a diff."""

    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """A sentence or two, wrapped to the width."""

    text: str


Block: TypeAlias = Line | Facts | Verbatim | Prose


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a command: its exit status, the members of its JSON report, and what a person sees.

    `members` stand beside `schemaVersion`, `ok` and `exitCode` in the report. `blocks` are shown to a person after
    what the command showed while it ran.
    """

    exit_status: ExitStatus
    members: Mapping[str, Json] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """Text that is itself what was asked for (a help text, a JSON Schema), written as it is.

    In a JSON report `reported`, or else the text, stands under `member`.
    """

    text: str
    member: str
    exit_status: ExitStatus
    reported: Json = None


@dataclass(frozen=True, slots=True)
class Misuse:
    """The command line was not understood: a fixed sentence, and the names that would have been.

    `nearest` are those of them that are spelt most like the word that was not understood, which is never repeated.
    """

    message: str
    valid: tuple[tuple[str, tuple[str, ...]], ...] = ()
    code: str = "usage"
    nearest: tuple[str, ...] = ()


Answer: TypeAlias = Outcome | Document | Misuse


Say: TypeAlias = Callable[[str], None]
"""Replaces what a command says that it is busy with. Never blocks for long and never raises."""


class Show(Protocol):
    """What a command may do while it runs: show a block to a person, and say what it is busy with."""

    def block(self, block: Block) -> None:
        """Show `block` now, in the human form; nothing happens in the JSON form."""

    def working(self, what: str) -> AbstractContextManager[Say]:
        """Show that `what` goes on (on stderr, only on a terminal) until the context ends; yields how to say more."""


Command: TypeAlias = Callable[[Show], Answer]
"""A parsed command line, not yet run."""


def always(answer: Answer) -> Command:
    """A command whose answer is known already."""
    return lambda _show: answer
