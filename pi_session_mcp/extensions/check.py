"""Compares every pin of a configuration with what Pi has installed, for `extensions check` and the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi_session_mcp.errors import Code
from pi_session_mcp.extensions.outcomes import OK, VERDICTS, Condition, Fault
from pi_session_mcp.extensions.resolve import Place, judge

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.terms.pin import Pin


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one pin of one profile. `condition` is `None` when there is nothing to say."""

    profile: str
    pin: Pin
    condition: Condition | None

    @property
    def fault(self) -> Fault | None:
        """The code with which the server would refuse a session, or `None`."""
        return None if self.condition is None else VERDICTS[self.condition].fault

    @property
    def status(self) -> str:
        """`ok`, or the code with which the server would refuse the session."""
        return OK if self.fault is None else self.fault.value

    @property
    def reason(self) -> str | None:
        """The condition, if it says more than the status."""
        is_said = self.fault in {Code.EXTENSION_NOT_INSTALLED, Code.EXTENSION_VERSION_MISMATCH}
        return None if self.condition is None or is_said else self.condition.value

    @property
    def remediation(self) -> str | None:
        """What the operator can do about it, in a fixed sentence."""
        return None if self.condition is None else VERDICTS[self.condition].remediation


def check(configuration: Configuration, agent_directory: Path) -> tuple[Finding, ...]:
    """One finding for each pin of each profile, sorted by profile and then package. Reads files only."""
    place = place_of(configuration, agent_directory)
    profiles = configuration.execution_profiles
    pinned = [(alias, one) for alias, profile in profiles.items() for one in profile.extensions]
    found = {one: judge(one, place).condition for one in dict.fromkeys(one for _, one in pinned)}
    ordered = sorted(pinned, key=lambda one: (one[0], one[1].name))
    return tuple(Finding(alias, one, found[one]) for alias, one in ordered)


def place_of(configuration: Configuration, agent_directory: Path) -> Place:
    """Where the extensions of this configuration are looked for."""
    return Place(agent_directory, tuple(configuration.workspaces.values()))
