"""What a subject of the doctor consists of: rows of the table, a look, and a verdict. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pi_session_mcp.doctor.installation import Installation

_Facts = TypeVar("_Facts")
_Seen = TypeVar("_Seen")
_Otherwise = TypeVar("_Otherwise")

ALIAS: Final = "workspace alias"
PIN: Final = "<profile>:<package>"
PROFILE: Final = "profile alias"
TARGET: Final = "target"
VARIABLE: Final = "name of a variable"
OK: Final = "ok"
"""The status of what has no fault. Any other status is the id of a row."""
UNCHECKED: Final = (
    "This could not be checked: reinstall pi-session-mcp, and report it as a defect if that does not help."
)
"""The remedy of any row when its look failed."""


class Severity(StrEnum):
    """How bad a finding is; `OK` means that the doctor looked for it and did not find it."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that the doctor looks for: a line of the table.

    `id` is part of the product's contract and is never renamed. `subject` is a fixed name, or says what kind of name a
    check puts there (`ALIAS`, `PIN`, `PROFILE`, `TARGET`, `VARIABLE`). `fine` and `found` follow the subject in the
    text for people. A remedy, followed to the letter, makes the finding go away.
    """

    id: str
    severity: Severity
    subject: str
    fine: str
    found: str
    meaning: str
    remedies: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """The remedy of a row that has only one."""
        (only,) = self.remedies
        return only


def error(name: str, subject: str, fine: str, found: str, meaning: str, *remedies: str) -> Row:
    """A row whose finding stops sessions."""
    return Row(name, Severity.ERROR, subject, fine, found, meaning, remedies)


def warning(name: str, subject: str, fine: str, found: str, meaning: str, *remedies: str) -> Row:
    """A row whose finding does not stop sessions."""
    return Row(name, Severity.WARNING, subject, fine, found, meaning, remedies)


@dataclass(frozen=True, slots=True)
class Check:
    """One result: a remedy is there when the row's finding was made.

    `place` says where in the configuration, and `note` says what could not be looked at.
    """

    row: Row
    subject: str
    remedy: str | None = None
    note: str | None = None
    place: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def severity(self) -> Severity:
        """That of the row if it was found."""
        return Severity.OK if self.remedy is None else self.row.severity

    def members(self) -> dict[str, str | int]:
        """The check as in the JSON report."""
        head = {"id": self.row.id, "severity": self.severity.value, "subject": self.subject}
        remedy = {} if self.remedy is None else {"remediation": self.remedy}
        note = {} if self.note is None else {"note": self.note}
        return {**head, **remedy, **self.place, **note}


def fine(row: Row, subject: str | None = None, note: str | None = None) -> Check:
    """Looked for and not found. The subject is the row's own unless another is given."""
    return Check(row, row.subject if subject is None else subject, note=note)


def found(row: Row, remedy: str | None = None, subject: str | None = None) -> Check:
    """Found. The remedy may be left out where the row has only one."""
    return Check(row, row.subject if subject is None else subject, row.remedy if remedy is None else remedy)


def up_to(
    rows: tuple[Row, ...], status: str = OK, remedy: str | None = None, subject: str | None = None
) -> Iterator[Check]:
    """The rows are fine up to the one that `status` names. Nothing can be said about those that follow it."""
    for row in rows:
        if row.id == status:
            yield found(row, remedy, subject)
            return
        yield fine(row, subject)


@dataclass(frozen=True, slots=True)
class Unseen:
    """A look failed, so nothing is known."""


def survive(look: Callable[[], _Seen], otherwise: _Otherwise) -> _Seen | _Otherwise:
    """What was seen, or `otherwise` when the look raised: one failure must not end the other looks."""
    try:
        return look()
    except Exception:  # noqa: BLE001 - a deleted module, a damaged dependency, a defect of ours: all are findings
        return otherwise


@dataclass(frozen=True, slots=True, eq=False)
class Subject(Generic[_Facts]):
    """One part of an installation.

    `look` does the I/O. It may raise, and returns `None` when it cannot look because another part is missing.
    `verdict` is a pure function of the facts. `unseen` is the row to report when the look failed, else the first.
    """

    rows: tuple[Row, ...]
    look: Callable[[Installation], _Facts | Unseen | None]
    verdict: Callable[[_Facts], Iterator[Check]]
    unseen: Row | None = None

    def judge(self, facts: _Facts | Unseen | None) -> Iterator[Check]:
        """The checks that follow from the facts, or from not having any."""
        if isinstance(facts, Unseen):
            yield from up_to(self.rows, (self.unseen or self.rows[0]).id, UNCHECKED)
        elif facts is not None:
            yield from self.verdict(facts)
