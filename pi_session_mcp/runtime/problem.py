"""What can be wrong with the runtime: the codes of `runtime status`, which `doctor` uses, too. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class RuntimeCode(StrEnum):
    """The state of Node and the Pi SDK."""

    OK = "ok"
    OUTDATED = "runtime_outdated"
    NODE_MISSING = "node_missing"
    NODE_VERSION_UNSUPPORTED = "node_version_unsupported"
    PI_RUNTIME_MISSING = "pi_runtime_missing"
    PI_VERSION_UNSUPPORTED = "pi_version_unsupported"


REMEDIATIONS: Final[dict[RuntimeCode, str | None]] = {
    RuntimeCode.OK: None,
    RuntimeCode.OUTDATED: "Run `pi-session-mcp runtime install` for the Pi SDK that this version is tested with.",
    RuntimeCode.NODE_MISSING: (
        "Install pi-session-mcp with its extra `node`, or Node.js 22.19.0 or newer, "
        "then run `pi-session-mcp runtime install`."
    ),
    RuntimeCode.NODE_VERSION_UNSUPPORTED: (
        "Use Node.js 22.19.0 or newer: install pi-session-mcp with its extra `node`, "
        "then run `pi-session-mcp runtime install`."
    ),
    RuntimeCode.PI_RUNTIME_MISSING: "Run `pi-session-mcp runtime install`.",
    RuntimeCode.PI_VERSION_UNSUPPORTED: (
        "Run `pi-session-mcp runtime install`, or name a Pi SDK from 1.5.2 to 1.6.x in the configuration."
    ),
}


CONFIGURED_NODE: Final = (
    "Name a program of Node.js 22.19.0 or newer as runtime.node in the configuration, "
    "or remove that entry and run `pi-session-mcp runtime install`."
)
CONFIGURED_SDK: Final = (
    "Name a whole Pi SDK from 1.5.2 to 1.6.x as runtime.sdk in the configuration, "
    "or remove that entry and run `pi-session-mcp runtime install`."
)
_OF_NODE: Final = frozenset({RuntimeCode.NODE_MISSING, RuntimeCode.NODE_VERSION_UNSUPPORTED})


def way_out(code: RuntimeCode, *, configured: bool, node_at_hand: bool) -> str | None:
    """What to do about `code`, without steps that are done already or would change nothing.

    `configured` says that the configuration chose the part, so an install does not replace it. `node_at_hand` says that
    an install would find a Node.js that it can use, so none has to be installed first.
    """
    if code is not RuntimeCode.OK and configured:
        return CONFIGURED_NODE if code in _OF_NODE else CONFIGURED_SDK
    return REMEDIATIONS[RuntimeCode.PI_RUNTIME_MISSING if code in _OF_NODE and node_at_hand else code]


class RuntimeProblem(Exception):  # noqa: N818 - a finding about the operator's machine, not an error of the program
    """The runtime cannot be used. Has a code and, if it is known, the version that was found."""

    def __init__(self, code: RuntimeCode, *, found: str | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.found = found
