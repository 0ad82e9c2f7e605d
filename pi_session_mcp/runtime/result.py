"""The result of an install. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Callable


class InstallCode(StrEnum):
    """How `runtime install` can end."""

    INSTALLED = "installed"
    ALREADY_INSTALLED = "already_installed"
    NODE_MISSING = "node_missing"
    NODE_VERSION_UNSUPPORTED = "node_version_unsupported"
    NPM_MISSING = "npm_missing"
    PLACE_UNWRITABLE = "runtime_place_unwritable"
    BUSY = "runtime_install_busy"
    REGISTRY_UNREACHABLE = "registry_unreachable"
    INTEGRITY = "package_integrity_mismatch"
    DISK_FULL = "disk_full"
    TIMED_OUT = "runtime_install_timeout"
    UNVERIFIED = "runtime_install_unverified"
    FAILED = "runtime_install_failed"
    INTERRUPTED = "interrupted"


_NODE_REMEDIATION: Final = "Install pi-session-mcp with its extra `node`, or Node.js 22.19.0 or newer, and try again."

INSTALL_REMEDIATIONS: Final[dict[InstallCode, str | None]] = {
    InstallCode.INSTALLED: None,
    InstallCode.ALREADY_INSTALLED: None,
    InstallCode.NODE_MISSING: _NODE_REMEDIATION,
    InstallCode.NODE_VERSION_UNSUPPORTED: _NODE_REMEDIATION,
    InstallCode.NPM_MISSING: "Install pi-session-mcp with its extra `node`, which brings npm, and try again.",
    InstallCode.PLACE_UNWRITABLE: (
        "Make the Python environment or the data directory below your home directory writable, and try again."
    ),
    InstallCode.BUSY: "Wait until the other `pi-session-mcp runtime install` has ended, and try again.",
    InstallCode.REGISTRY_UNREACHABLE: "Check the network, npm's registry and npm's proxy settings, and try again.",
    InstallCode.INTEGRITY: (
        "The registry delivered other content than was tested. Check npm's registry setting; nothing was installed."
    ),
    InstallCode.DISK_FULL: "Free about 300 MB of disk space and try again.",
    InstallCode.TIMED_OUT: "Check how fast npm's registry answers, and try again.",
    InstallCode.UNVERIFIED: "What was installed does not run on this machine; nothing was changed.",
    InstallCode.FAILED: "Check that npm works (`npm ping`), and try again; nothing was changed.",
    InstallCode.INTERRUPTED: None,
}


@dataclass(frozen=True, slots=True)
class InstallResult:
    """How an install ended. The versions were found by running or reading what is used now."""

    code: InstallCode
    node_version: str | None = None
    sdk_version: str | None = None
    exit_status: ExitStatus = ExitStatus.FAILURE

    @property
    def ok(self) -> bool:
        """Whether the pinned Pi SDK is used now."""
        return self.code in {InstallCode.INSTALLED, InstallCode.ALREADY_INSTALLED}

    @property
    def remediation(self) -> str | None:
        """What to do, in a fixed sentence."""
        return INSTALL_REMEDIATIONS[self.code]

    def members(self) -> dict[str, str | None]:
        """What the JSON report has besides `schemaVersion`, `ok` and `exitCode`."""
        told = {"status": self.code.value, "nodeVersion": self.node_version, "sdkVersion": self.sdk_version}
        return told if self.remediation is None else told | {"remediation": self.remediation}


class InstallStopped(Exception):  # noqa: N818 - an expected end; `install` turns it into a result
    """The install cannot go on."""

    def __init__(self, code: InstallCode, *, node_version: str | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.node_version = node_version


class Phase(StrEnum):
    """What an install is doing."""

    CHECKING = "checking"
    FETCHING = "fetching"
    VERIFYING = "verifying"


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of about `expected` steps of a phase. `expected` is 0 when it is not known."""

    phase: Phase
    done: int = 0
    expected: int = 0


if TYPE_CHECKING:
    Watcher = Callable[[Progress], None]
