"""The environment of a Pi host. Pure.

A project can set variables for its clients, and a client passes them on to its servers. What could change how Node, the
SDK or ripgrep work is therefore left out; what the user's own tools need is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.runtime.environment import without_node_options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DROPPED: Final = frozenset(
    {
        "PI_PACKAGE_DIR",  # moves the SDK's own assets (1.6.0, dist/config.js)
        "PI_SESSION_MCP_CONFIG",  # the host has no business with it, and bash children would see it
        "RIPGREP_CONFIG_PATH",  # may hold --pre COMMAND
    }
)


def host_environment(environ: Mapping[str, str], *, agent_directory: Path, tools: Path | None) -> dict[str, str]:
    """The variables that a host, and whatever it starts, sees.

    `tools` holds the pinned `rg` and comes first on `PATH`; relative entries of `PATH` would name places below whatever
    directory a command runs in, and are left out.
    """
    kept = {name: value for name, value in without_node_options(environ).items() if name not in _DROPPED}
    path = [entry for entry in environ.get("PATH", "").split(":") if entry.startswith("/")]
    kept["PATH"] = ":".join([*([str(tools)] if tools is not None else []), *path])
    return kept | {
        "PI_CODING_AGENT_DIR": str(agent_directory),
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
        "NO_COLOR": "1",
    }
