"""What a command found, before it is decided how to show it. Pure.

A command answers with an `Outcome`, and `render` turns it into text for a person or into the JSON report. Both come
from the same object, so the text says nothing that the report does not.
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
"""Version of the JSON reports. It is raised when a member is removed or changes its meaning."""


class Mark(StrEnum):
    """The state of one line, shown as a symbol beside a word, so that it can be read without colour."""

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
    """The result of a command: its exit status, the members of its JSON report, and what a person sees.

    `members` stand beside `schemaVersion`, `ok` and `exitCode` in the report. `blocks` are shown to a person after
    what the command showed while it ran.
    """

    exit_status: ExitStatus
    members: Mapping[str, Json] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A text that was asked for as such (a help text, a JSON Schema). It is written as it is.

    A JSON report has `reported`, or without it the text, as the member `member`.
    """

    text: str
    member: str
    exit_status: ExitStatus
    reported: Json = None


@dataclass(frozen=True, slots=True)
class Misuse:
    """The command line was not understood: a fixed sentence, and the names that are valid there.

    `nearest` are those with the most similar spelling. The word that was not understood is never repeated.
    """

    message: str
    valid: tuple[tuple[str, tuple[str, ...]], ...] = ()
    code: str = "usage"
    nearest: tuple[str, ...] = ()


Answer: TypeAlias = Outcome | Document | Misuse


Say: TypeAlias = Callable[[str], None]
"""Changes what the command says it is busy with. Never blocks for long and never raises."""


class Show(Protocol):
    """What a command may do while it runs: show a block to a person, or say what it is busy with."""

    def block(self, block: Block) -> None:
        """Show `block` now to a person. With `--json` this does nothing."""

    def working(self, what: str) -> AbstractContextManager[Say]:
        """Say on a terminal (standard error) that `what` goes on, until the context ends. Yields a way to say more."""


Command: TypeAlias = Callable[[Show], Answer]
"""A parsed command line, not yet run."""


def always(answer: Answer) -> Command:
    """A command whose answer is known already."""
    return lambda _show: answer
