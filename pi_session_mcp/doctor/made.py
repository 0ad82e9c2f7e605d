"""One check of the doctor, and how it is made. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pi_session_mcp.doctor.words import ROWS, Id, Note, Remedy, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked for. `remedy` is set when it was found; the rest says where in the configuration.

    `note` says what could not be looked at.
    """

    id: Id
    severity: Severity
    subject: str
    remedy: Remedy | None = None
    pointer: str | None = None
    line: int | None = None
    column: int | None = None
    rule: str | None = None
    note: Note | None = None

    def noted(self, note: Note) -> Check:
        """The same check with this note."""
        return replace(self, note=note)


def fine(what: Id, subject: str | None = None, note: Note | None = None) -> Check:
    """Looked for and not found; the row's own subject unless another is given."""
    return Check(what, Severity.OK, ROWS[what].subject if subject is None else subject, note=note)


def found(what: Id, remedy: Remedy, subject: str | None = None) -> Check:
    """Found, with the row's severity."""
    row = ROWS[what]
    return Check(what, row.severity, row.subject if subject is None else subject, remedy)


def up_to(ids: tuple[Id, ...], wrong: Id | None, remedy: Remedy, subject: str | None = None) -> Iterator[Check]:
    """Each of `ids` up to the one that was found, which ends the line."""
    for what in ids:
        if what is wrong:
            yield found(what, remedy, subject)
            return
        yield fine(what, subject)
