"""What setup found and did, before it is decided how to show it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.setup.targets import Target


class Operation(StrEnum):
    """What was asked for. The words are the names of the options; the overview of all targets needs no option."""

    OVERVIEW = "overview"
    DRY_RUN = "dry-run"
    APPLY = "apply"
    VERIFY = "verify"
    ROLLBACK = "rollback"
    REMOVE = "remove"
    REBIND = "rebind"


class Status(StrEnum):
    """How a target came out, or all of them together."""

    PLANNED = "planned"
    OK = "ok"
    UNCHANGED = "unchanged"
    ABSENT = "absent"
    DIVERGENT = "divergent"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


class Relation(StrEnum):
    """Which configuration a registration uses, without its path."""

    SAME = "same"
    ANOTHER = "another"


class SetupCode(StrEnum):
    """Why a target came out so. The codes are stable, and carry no value."""

    TARGET_INVALID = "target_invalid"
    USAGE_INVALID = "usage_invalid"
    CONFIG_REQUIRED = "config_required"
    PLATFORM_UNSUPPORTED = "platform_unsupported"
    OPERATION_INTERRUPTED = "operation_interrupted"
    DOCTOR_FAILED = "doctor_failed"
    RELEASE_UNAVAILABLE = "release_unavailable"
    INSTALLATION_EPHEMERAL = "installation_ephemeral"
    CLIENT_MISSING = "client_missing"
    CLIENT_UNSUPPORTED = "client_unsupported"
    INSPECT_FAILED = "inspect_failed"
    HOME_UNAVAILABLE = "home_unavailable"
    CLIENT_HOME_MISSING = "client_home_missing"
    LOCK_BUSY = "lock_busy"
    FILESYSTEM_UNSUPPORTED = "filesystem_unsupported"
    STATE_DIRECTORY_UNSAFE = "state_directory_unsafe"
    STATE_DIRECTORY_UNAVAILABLE = "state_directory_unavailable"
    USER_SCOPE_UNCLEAR = "user_scope_unclear"
    OPERATION_FAILED = "operation_failed"

    ABSENT = "absent"
    EQUIVALENT = "equivalent"
    DIVERGENT = "divergent"
    ALREADY_EQUIVALENT = "already_equivalent"
    DIVERGENCE_REQUIRES_REPLACEMENT = "divergence_requires_replacement"
    REGISTRATION_DISABLED = "registration_disabled"
    SETTINGS_WOULD_BE_LOST = "settings_would_be_lost"
    REGISTRATION_FINGERPRINT_MISMATCH = "registration_fingerprint_mismatch"
    RELEASE_BINDING_MISMATCH = "release_binding_mismatch"

    APPLIED = "applied"
    PENDING_RECOVERED = "pending_recovered"
    REBOUND = "rebound"
    OWNERSHIP_UNAVAILABLE = "ownership_unavailable"
    APPLY_FAILED_RECOVERY_PENDING = "apply_failed_recovery_pending"

    REGISTRATION_NOT_EQUIVALENT = "registration_not_equivalent"
    MCP_VERIFIED = "mcp_verified"
    MCP_UNSUPPORTED = "mcp_unsupported"
    MCP_TIMEOUT = "mcp_timeout"
    MCP_FAILED = "mcp_failed"

    ROLLED_BACK = "rolled_back"
    REMOVED = "removed"
    OWNERSHIP_DIVERGED = "ownership_diverged"
    CLEANUP_FAILED = "cleanup_failed"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a target came out, and why."""

    status: Status
    code: SetupCode


class Stopped(Exception):  # noqa: N818 - an expected answer of the world
    """The operation, or its part for one target, cannot go on. Nothing is lost. `code` says why.

    `in_the_way` is one of a few fixed names: what has to be moved away.
    """

    def __init__(self, code: SetupCode, status: Status = Status.FAILED, in_the_way: str | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.conclusion = Conclusion(status, code)
        self.in_the_way = in_the_way


@dataclass(frozen=True, slots=True)
class Finding:
    """How one target came out.

    `other_scope` names a scope of the same client that has our name too. `in_the_way` names what has to be moved: a
    mark of a project (`.mcp.json`, `.git`, `.codex`), or `inspect`, setup's own directory to look from. `configuration`
    says whether the registration uses the configuration that we would register.
    """

    target: Target
    conclusion: Conclusion
    other_scope: str | None = None
    in_the_way: str | None = None
    configuration: Relation | None = None

    def members(self) -> dict[str, str | Mapping[str, str]]:
        """The finding as the JSON report has it."""
        target = {"client": self.target.client, "scope": self.target.scope, "alias": self.target.alias}
        told: dict[str, str | Mapping[str, str]] = {
            "target": target,
            "status": self.conclusion.status.value,
            "code": self.conclusion.code.value,
        }
        relation = None if self.configuration is None else self.configuration.value
        more = {"configuration": relation, "otherScope": self.other_scope, "inTheWay": self.in_the_way}
        return {**told, **{name: value for name, value in more.items() if value is not None}}


_WORST_FIRST: Final = (Status.FAILED, Status.UNSUPPORTED, Status.DIVERGENT)
_NO_FAULT_OF_AN_OVERVIEW: Final = frozenset({SetupCode.CLIENT_MISSING, SetupCode.CLIENT_UNSUPPORTED})
_LOOKS: Final = frozenset({Operation.OVERVIEW, Operation.DRY_RUN})
_GOOD: Final = frozenset({Status.PLANNED, Status.OK, Status.UNCHANGED, Status.ABSENT})


@dataclass(frozen=True, slots=True)
class Result:
    """Everything about one run. `interrupted` is the exit status of a signal that ended it."""

    operation: Operation
    findings: tuple[Finding, ...]
    interrupted: ExitStatus | None = None

    @property
    def status(self) -> Status:
        """The worst status of all findings, or that all went well."""
        well = Status.PLANNED if self.operation in _LOOKS else Status.OK
        return next((status for status in _WORST_FIRST if status in self._telling), well)

    @property
    def _telling(self) -> frozenset[Status]:
        """The statuses that count. An overview is of all clients, and a client that is not installed is no fault."""
        passed_over = _NO_FAULT_OF_AN_OVERVIEW if self.operation is Operation.OVERVIEW else frozenset()
        return frozenset(one.conclusion.status for one in self.findings if one.conclusion.code not in passed_over)

    @property
    def exit_status(self) -> ExitStatus:
        """0 when all is as asked for, 1 when something is left to do, or the status of the signal."""
        if self.interrupted is not None:
            return self.interrupted
        return ExitStatus.OK if self._telling <= _GOOD else ExitStatus.FAILURE

    def members(self) -> dict[str, str | list[dict[str, str | Mapping[str, str]]]]:
        """What the JSON report has besides `schemaVersion`, `ok` and `exitCode`."""
        return {
            "operation": self.operation.value,
            "status": self.status.value,
            "findings": [finding.members() for finding in self.findings],
        }
