"""Everything that a run needs from outside, in one value that a test can change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.setup.clients.known import client_named
from pi_session_mcp.setup.release import Installation, find_installation, require_lasting
from pi_session_mcp.setup.state_directory import state_directory
from pi_session_mcp.setup.steps import unwatched
from pi_session_mcp.setup.system import System, this_system

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.setup.clients.base import AskedFrom, Client
    from pi_session_mcp.setup.steps import OnStep


def lasting_installation(environ: Mapping[str, str]) -> Installation:
    """This installation. Raises `Stopped` if it cannot be found, or will not stay where it is."""
    installation = find_installation(environ)
    require_lasting(installation, environ)
    return installation


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupInputs:
    """Where a run happens.

    The scopes `project` and `local` mean `cwd`. `doctor_is_clean` says whether the offline check found no error. It is
    called at most once, before any client runs. `tools` are the names of the tools that the server has to offer.
    `installation` raises `Stopped` when this installation cannot be registered.
    """

    environ: Mapping[str, str]
    cwd: Path
    doctor_is_clean: Callable[[], bool]
    tools: frozenset[str]
    installation: Callable[[Mapping[str, str]], Installation] = lasting_installation
    state: Callable[[Mapping[str, str]], Path] = state_directory
    client: Callable[[str, AskedFrom], Client] = client_named
    system: System = field(default_factory=this_system)
    on_step: OnStep = unwatched
    deadlines: Deadlines = DEADLINES
