"""Every pin of a configuration against what Pi has installed: what `extensions check` and the doctor report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.extensions import pin
from pi_session_mcp.extensions.outcomes import OK, REMEDIATIONS, Fault
from pi_session_mcp.extensions.resolve import Place, resolve

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.extensions.pin import Pin


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one pin of one profile; `fault` is `None` when it is installed as pinned."""

    profile: str
    pin: Pin
    fault: Fault | None

    @property
    def status(self) -> str:
        """`ok`, or the code with which the server would refuse the session."""
        return OK if self.fault is None else self.fault.value

    @property
    def remediation(self) -> str | None:
        """What an operator does about it; a fixed sentence."""
        return None if self.fault is None else REMEDIATIONS[self.fault]


def check(configuration: Configuration, agent_directory: Path) -> tuple[Finding, ...]:
    """One finding for each pin of each profile, sorted by profile and then package. Reads files only."""
    place = place_of(configuration, agent_directory)
    pinned = [
        (alias, pin.parse(text))
        for alias, profile in configuration.execution_profiles.items()
        for text in profile.extensions
    ]
    ordered = sorted(pinned, key=lambda one: (one[0], one[1].name))
    return tuple(Finding(alias, one, _fault(one, place)) for alias, one in ordered)


def place_of(configuration: Configuration, agent_directory: Path) -> Place:
    """Where this configuration's extensions are looked for."""
    return Place(agent_directory, tuple(configuration.workspaces.values()))


def _fault(one: Pin, place: Place) -> Fault | None:
    try:
        resolve(one, place)
    except Refusal as refusal:
        match refusal.code:
            case Code.EXTENSION_NOT_INSTALLED | Code.EXTENSION_VERSION_MISMATCH | Code.EXTENSION_LOAD_FAILED:
                return refusal.code
            case _:
                raise
    return None
