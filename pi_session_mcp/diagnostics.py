"""Diagnostics: what may be said on stderr, one JSON object a line. Pure.

A diagnostic has the fields below and no others, so it cannot carry a path, a prompt or a foreign text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from pi_session_mcp.terms.selection import Selection


class Event(StrEnum):
    """The kinds of diagnostics."""

    STARTUP_FAILED = "startup_failed"
    PI_SESSION_CREATION_FAILED = "pi_session_creation_failed"
    PI_HOST_EXITED = "pi_host_exited"
    FOREIGN_STDOUT_SUPPRESSED = "foreign_stdout_suppressed"
    MCP_TRANSPORT_ERROR = "mcp_transport_error"
    INSTRUCTIONS_LEFT_OUT = "instructions_left_out"
    SHUTDOWN_FAILED = "shutdown_failed"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One line on stderr. Fields that are `None` are left out; names become camelCase.

    `pointer` and `rule` come from the configuration's own table; `profile`, `selection`, `server` and `tool` are
    the operator's configured words; `extension` is `<name>@<version>`; `reason` is ours.
    `workspace` is an alias. `left_out` maps each reason for leaving files out to how many were left out for it.
    `agent_directory_variable` says why `PI_CODING_AGENT_DIR` was ignored.
    """

    level: Literal["error", "warning"]
    event: Event
    code: str | None = None
    stage: str | None = None
    reason: str | None = None
    pointer: str | None = None
    rule: str | None = None
    line: int | None = None
    column: int | None = None
    profile: str | None = None
    selection: Selection | None = None
    server: str | None = None
    tool: str | None = None
    discovered_tools: int | None = None
    extension: str | None = None
    agent_directory_variable: str | None = None
    workspace: str | None = None
    left_out: Mapping[str, int] | None = None
    bytes: int | None = None
    writes: int | None = None
    dropped: int | None = None

    def to_line(self) -> str:
        """The diagnostic as one line of ASCII JSON, without the line end."""
        said: dict[str, object] = {}
        for field in fields(self):
            match getattr(self, field.name):
                case None:
                    pass
                case Selection() as selection:
                    said |= selection.to_json()
                case value:
                    said[_CAMEL.get(field.name, field.name)] = value
        return json.dumps(said, separators=(",", ":"))


Report: TypeAlias = Callable[[Diagnostic], None]
"""Where diagnostics go. Never blocks and never raises."""

_CAMEL: Final = {
    "discovered_tools": "discoveredTools",
    "left_out": "leftOut",
    "agent_directory_variable": "agentDirectoryVariable",
}
