"""The variables that a Pi host gets with these inputs: for a server's hosts, and for what the doctor asks Pi."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pi_session_mcp.host.host_environment import host_environment
from pi_session_mcp.platform.paths import is_below
from pi_session_mcp.platform.temporary import with_usable_temporary_directory
from pi_session_mcp.runtime.agent_directory import agent_directory
from pi_session_mcp.runtime.overrides import untrusted_directories

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.runtime.overrides import Asked


def host_variables(asked: Asked, environ: Mapping[str, str], cwd: Path, *, tools: Path | None) -> dict[str, str]:
    """See `host_environment`; `tools` is the directory of the installed `rg`. Raises `Refusal`."""
    projects = tuple(untrusted_directories(asked, cwd))
    return host_environment(
        with_usable_temporary_directory(environ),
        agent_directory=agent_directory(asked, environ, cwd),
        tools=tools,
        is_project=lambda path: any(is_below(Path(path), root) for root in projects),
    )
