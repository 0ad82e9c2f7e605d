"""The environment of a Pi host. Pure.

A project can set variables for its clients, and a client passes them on to its servers. So variables that change how
Node, the SDK or ripgrep work are left out. What the user's own tools need is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.runtime.node_environment import without_node_options
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_DROPPED: Final = frozenset(
    {
        "PI_PACKAGE_DIR",  # moves the SDK's own assets (1.6.0, dist/config.js)
        VARIABLE,  # a host does not need it, and commands of bash would see it
        "RIPGREP_CONFIG_PATH",  # may hold --pre COMMAND
    }
)


def _is_nowhere(_directory: str) -> bool:
    return False


def host_environment(
    environ: Mapping[str, str],
    *,
    agent_directory: Path,
    tools: Path | None,
    is_project: Callable[[str], bool] = _is_nowhere,
) -> dict[str, str]:
    """The variables of a host, and of all that it starts.

    `tools` holds the pinned `rg` and comes first on `PATH`; relative entries of `PATH` would name places below whatever
    directory a command runs in, and are left out. Without `tools`, Pi looks for `rg` on `PATH`, for read-only sessions
    as well, so that entries in a project are left out too.
    """
    kept = {name: value for name, value in without_node_options(environ).items() if name not in _DROPPED}
    path = [entry for entry in environ.get("PATH", "").split(":") if entry.startswith("/")]
    if tools is None:
        kept["PATH"] = ":".join(entry for entry in path if not is_project(entry))
    else:
        kept["PATH"] = ":".join([str(tools), *path])
    return kept | {
        "PI_CODING_AGENT_DIR": str(agent_directory),
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
        "NO_COLOR": "1",
    }
