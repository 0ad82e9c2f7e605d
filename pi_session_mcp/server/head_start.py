"""A session that is asked for while the MCP SDK is still being imported: its Pi host starts meanwhile.

The two take about as long as each other, and a machine mostly has a second processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.errors import Refusal
from pi_session_mcp.host import process
from pi_session_mcp.host.pool import EarlyHost, for_extensions
from pi_session_mcp.keeper.orphans import adopt_orphans
from pi_session_mcp.server import frames
from pi_session_mcp.server.launching import Surroundings, launcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_session_mcp.config.model import Configuration, ExecutionProfile

_LOOKED_AT: Final = 8
"""Of the messages that wait: a client that wants a session at once asks for it first."""


def head_start(waiting: Sequence[frames.Line], configuration: Configuration) -> EarlyHost | None:
    """Start the host of the first session that is waited for, if there is one.

    It ends with this process, or with the pool that takes it over. Whatever is wrong is said by the session's start.
    """
    profile = asked_for(waiting, configuration)
    if profile is None:
        return None
    adopt_orphans()
    spare = bool(profile.extensions)
    try:
        launch = launcher(configuration, Surroundings.here())()
        return EarlyHost(process.start(for_extensions(launch) if spare else launch), spare)
    except (Refusal, OSError):
        return None


def asked_for(waiting: Sequence[frames.Line], configuration: Configuration) -> ExecutionProfile | None:
    """The profile of the first session that these messages ask for, if it can be had at all. Pure."""
    for line in waiting[:_LOOKED_AT]:
        message = frames.read(line)
        if isinstance(message, frames.Request) and message.method == "tools/call":
            params = message.params or {}
            if params.get("name") == "pi_session_start":
                return _profile(params.get("arguments"), configuration)
    return None


def _profile(arguments: object, configuration: Configuration) -> ExecutionProfile | None:
    if not isinstance(arguments, dict):
        return None
    workspace, alias = arguments.get("workspace"), arguments.get("executionProfile", configuration.default_profile)
    if not isinstance(workspace, str) or not isinstance(alias, str) or workspace not in configuration.workspaces:
        return None
    return configuration.execution_profiles.get(alias)
