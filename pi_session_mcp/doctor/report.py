"""The doctor's result and its projection for programs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pi_session_mcp import __version__
from pi_session_mcp.doctor.words import ALIAS, PIN, PROFILE, ROWS, Id, Remedy, Severity
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from pi_session_mcp.config.place import Source
    from pi_session_mcp.doctor.made import Check

Member: TypeAlias = str | int

_COMMAND: Final = re.compile(r"`(pi-session-mcp [a-z -]+)`")
_SINGLE: Final = frozenset({ALIAS, PIN, PROFILE})
_WHEN_FINE: Final = "pi-session-mcp demo"
_REGISTER: Final = "pi-session-mcp setup"
_LOOK_AGAIN: Final = "pi-session-mcp doctor"
_OF_THE_CONFIGURATION: Final = frozenset({Id.CONFIG_MISSING, Id.CONFIG_UNREADABLE, Id.CONFIG_INVALID})


@dataclass(frozen=True, slots=True)
class Report:
    """Every check, in order, and what follows from them."""

    checks: tuple[Check, ...]
    package_version: str = __version__
    configuration_from: Source | None = None
    """What says where the configuration is; `None` where nothing does."""
    is_registered: bool = True
    """Whether a client starts this server, as far as setup's records say."""

    def of(self, severity: Severity) -> tuple[Check, ...]:
        """The checks of one severity, in order."""
        return tuple(check for check in self.checks if check.severity is severity)

    @property
    def worst(self) -> Severity:
        """The severity that decides."""
        found = {check.severity for check in self.checks}
        return next((one for one in (Severity.ERROR, Severity.WARNING) if one in found), Severity.OK)

    @property
    def prevents_registration(self) -> bool:
        """Whether an error concerns the whole installation.

        One of a single workspace, profile or pin does not: it is mended without registering anew, and others may work.
        """
        return any(ROWS[check.id].subject not in _SINGLE for check in self.of(Severity.ERROR))

    @property
    def exit_status(self) -> ExitStatus:
        """0 when all is well, 1 for warnings only, 2 for an error."""
        statuses = {
            Severity.OK: ExitStatus.OK,
            Severity.WARNING: ExitStatus.FAILURE,
            Severity.ERROR: ExitStatus.CHECK_FAILED,
        }
        return statuses[self.worst]

    @property
    def next_command(self) -> str:
        """What to type next: the first command that a remedy of the worst findings names."""
        if self.worst is Severity.OK:
            return _WHEN_FINE if self.is_registered else _REGISTER
        found = sorted(self.of(self.worst), key=lambda check: not _stops_commands(check))
        return next((command for check in found if (command := _command(check))), _LOOK_AGAIN)

    def members(self) -> dict[str, str | list[dict[str, Member]]]:
        """What the JSON report says beside `schemaVersion`, `ok` and `exitCode`."""
        source = {} if self.configuration_from is None else self.configuration_from.members("configurationSource")
        checks = [check_members(check) for check in self.checks]
        return {"packageVersion": self.package_version, **source, "checks": checks}


def _stops_commands(check: Check) -> bool:
    """Whether it comes first: other commands refuse a bad configuration, and can do without any."""
    return check.id in _OF_THE_CONFIGURATION and check.remedy is not Remedy.NAME_CONFIGURATION


def _command(check: Check) -> str | None:
    """The command that the remedy of a finding names, with the target that it needs."""
    named = _COMMAND.search(check.remedy or "")
    if named is None:
        return None
    return f"{named[1]} {check.subject}" if check.remedy is Remedy.PENDING else named[1]


def check_members(check: Check) -> dict[str, Member]:
    """One check as in the JSON report; what does not apply is left out."""
    told: dict[str, Member | None] = {
        "id": check.id.value,
        "severity": check.severity.value,
        "subject": check.subject,
        "remediation": None if check.remedy is None else check.remedy.value,
        "pointer": check.pointer,
        "line": check.line,
        "column": check.column,
        "rule": check.rule,
        "note": None if check.note is None else check.note.value,
    }
    return {name: value for name, value in told.items() if value is not None}
