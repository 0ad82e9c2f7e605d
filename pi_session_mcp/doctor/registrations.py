"""Which clients start this server, by setup's records, and what Codex gives it. Reads files, and starts no client."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.doctor.passing import kept_back

if TYPE_CHECKING:
    from collections.abc import Mapping

_CODEX: Final = "codex"
_MAX_FILE_BYTES: Final = 1024 * 1024


def registered_clients(state_directory: Path) -> frozenset[str]:
    """The names of the clients in which setup has registered this server. Raises what reading the records raises."""
    from pi_session_mcp.setup.ownership import Ownership

    if not state_directory.exists():
        return frozenset()
    records = Ownership(state_directory).read().records
    return frozenset(record.target.partition(":")[0] for record in records if not record.is_pending)


def kept_back_variables(state_directory: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that a registered client will keep from the server. Raises what reading the records raises."""
    if _CODEX not in registered_clients(state_directory):
        return ()
    return tuple(kept_back(environ, _passed_by_entry(environ)))


def _passed_by_entry(environ: Mapping[str, str]) -> frozenset[str]:
    """The variables that our entry in Codex's own configuration names; nothing where it cannot be read."""
    from pi_session_mcp.setup.targets import ALIAS

    directory = Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", "/")) / ".codex")
    try:
        with (directory / "config.toml").open("rb") as file:
            entry: Any = tomllib.loads(file.read(_MAX_FILE_BYTES).decode())["mcp_servers"][ALIAS]
        names = [*entry.get("env_vars", ()), *entry.get("env", {})]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str))
