"""The doctor's result, and its form for programs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_session_mcp import __version__
from pi_session_mcp.doctor.subject import ALIAS, PIN, PROFILE, TARGET, Check, Severity
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from pi_session_mcp.config.place import Source

_COMMAND: Final = re.compile(r"`(pi-session-mcp [a-z -]+)`")
_SINGLE: Final = frozenset({ALIAS, PIN, PROFILE})
_WHEN_FINE: Final = "pi-session-mcp demo"
_REGISTER: Final = "pi-session-mcp setup"
_LOOK_AGAIN: Final = "pi-session-mcp doctor"
_CONFIGURATION: Final = "configuration"


@dataclass(frozen=True, slots=True)
class Report:
    """Every check, in order, and what follows from them."""

    checks: tuple[Check, ...]
    package_version: str = __version__
    configuration_from: Source | None = None
    """What names the configuration; `None` when nothing does."""
    is_registered: bool = True
    """Whether a client starts this server, as far as setup's records say."""

    def of(self, severity: Severity) -> tuple[Check, ...]:
        """The checks of one severity, in order."""
        return tuple(check for check in self.checks if check.severity is severity)

    @property
    def worst(self) -> Severity:
        """The worst severity that was found."""
        found = {check.severity for check in self.checks}
        return next((one for one in (Severity.ERROR, Severity.WARNING) if one in found), Severity.OK)

    @property
    def prevents_registration(self) -> bool:
        """Whether an error concerns the whole installation.

        One of a single workspace, profile or pin does not: others may work, and mending it needs no new registration.
        """
        return any(check.row.subject not in _SINGLE for check in self.of(Severity.ERROR))

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
        """What to type next: the first command that a remedy of the worst findings names.

        A named configuration comes first: other commands refuse a bad one, and can do without any.
        """
        if self.worst is Severity.OK:
            return _WHEN_FINE if self.is_registered else _REGISTER
        is_named = self.configuration_from is not None
        found = sorted(self.of(self.worst), key=lambda check: not (is_named and check.row.subject == _CONFIGURATION))
        return next((command for check in found if (command := _command(check))), _LOOK_AGAIN)

    def members(self) -> dict[str, str | list[dict[str, str | int]]]:
        """The members of the JSON report beside `schemaVersion`, `ok` and `exitCode`."""
        source = {} if self.configuration_from is None else self.configuration_from.members("configurationSource")
        checks = [check.members() for check in self.checks]
        return {"packageVersion": self.package_version, **source, "checks": checks}


def _command(check: Check) -> str | None:
    """The command that the remedy of a finding names, with the target that it needs."""
    named = _COMMAND.search(check.remedy or "")
    if named is None:
        return None
    return f"{named[1]} {check.subject}" if check.row.subject == TARGET else named[1]
