"""Starts the Pi host of a session that was asked for before the server was loaded, while it loads.

Most machines have a second processor for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.errors import Refusal
from pi_session_mcp.host import process
from pi_session_mcp.host.pool import EarlyHost, for_extensions
from pi_session_mcp.server.launching import Inherited, launcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_session_mcp.config.model import Configuration, ExecutionProfile
    from pi_session_mcp.server.wire.protocol import Call

_LOOKED_AT: Final = 8
"""So many of the waiting calls: a client that wants a session at once asks for it first."""


def head_start(calls: Sequence[Call], configuration: Configuration) -> EarlyHost | None:
    """Start the host of the first session that is asked for, if there is one.

    It ends with this process, or with the pool that takes it over. If it cannot start, the session's start says why.
    """
    profile = asked_for(calls, configuration)
    if profile is None:
        return None
    spare = bool(profile.extensions)
    try:
        launch = launcher(configuration, Inherited.here())()
        return EarlyHost(process.start(for_extensions(launch) if spare else launch), spare)
    except (Refusal, OSError):
        return None


def asked_for(calls: Sequence[Call], configuration: Configuration) -> ExecutionProfile | None:
    """The profile of the first session that these calls ask for, if the configuration has it. Pure."""
    for call in calls[:_LOOKED_AT]:
        if call.name == "pi_session_start":
            return _profile(call.arguments, configuration)
    return None


def _profile(arguments: object, configuration: Configuration) -> ExecutionProfile | None:
    if not isinstance(arguments, dict):
        return None
    workspace, alias = arguments.get("workspace"), arguments.get("executionProfile", configuration.default_profile)
    if not isinstance(workspace, str) or not isinstance(alias, str) or workspace not in configuration.workspaces:
        return None
    return configuration.execution_profiles.get(alias)
