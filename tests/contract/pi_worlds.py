"""Worlds in which a `ports.PiSessions` can be tried: what Pi does there is scripted in the same words.

Each script method returns the prompt that makes it happen, so a world may decide by the prompt's text, as a scripted
model does. A real world serves these from a scripted model on the loopback and a real agent directory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from pi_session_mcp.config.model import ExecutionProfile
from pi_session_mcp.errors import Code
from pi_session_mcp.sessions.ports import SessionSpec
from tests.fakes.pi import FakePi, FakePiSession, Finishes, Manual

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.sessions.outcome import Outcome
    from pi_session_mcp.sessions.ports import PiSession, PiSessions

PATIENCE_S: Final = 30
"""For what must happen; never waited out when it does."""


class PiWorld(Protocol):
    """A Pi and the scripts of its model."""

    @property
    def pi(self) -> PiSessions:
        """The implementation that is tried."""

    def spec(self) -> SessionSpec:
        """A session that can be created, on the shared host."""

    def spec_of_unknown_provider(self) -> SessionSpec:
        """One whose provider Pi does not know."""

    def spec_of_unknown_model(self) -> SessionSpec:
        """One whose model Pi does not know."""

    def spec_without_credentials(self) -> SessionSpec:
        """One for whose provider Pi has no credential."""

    def answers(self, text: str) -> str:
        """The model answers with `text`."""

    def calls_tool_then_answers(self, text: str) -> str:
        """The model calls one tool, then answers with `text`."""

    def stalls(self) -> str:
        """The model never answers."""

    def fails(self) -> str:
        """The model's endpoint fails, for good."""

    async def kill_host(self, session: PiSession) -> None:
        """The session's host dies at once, as by SIGKILL."""


@dataclass
class Heard:
    """`ports.SessionEvents` that notes everything."""

    signs: list[int] = field(default_factory=list)
    outcomes: list[tuple[int, Outcome]] = field(default_factory=list)
    foreign: list[bool] = field(default_factory=list)
    ends: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def activity(self, turn: int) -> None:
        self.signs.append(turn)
        self._wake()

    def settled(self, turn: int, outcome: Outcome) -> None:
        self.outcomes.append((turn, outcome))
        self._wake()

    def foreign_run(self, *, active: bool) -> None:
        self.foreign.append(active)
        self._wake()

    def host_ended(self) -> None:
        self.ends += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, seen: Callable[[], bool]) -> None:
        """Return when `seen()`; fail when that takes too long."""
        with anyio.fail_after(PATIENCE_S):
            while not seen():
                await self._changed.wait()

    async def outcome_of(self, turn: int) -> Outcome:
        await self.until(lambda: any(number == turn for number, _ in self.outcomes))
        return next(outcome for number, outcome in self.outcomes if number == turn)


class FakeWorld:
    """`PiWorld` in memory."""

    def __init__(self) -> None:
        self._fake = FakePi()
        self._fake.refuses = {
            "nobody": Code.UNKNOWN_PROVIDER,
            "nothing": Code.UNKNOWN_MODEL,
            "locked": Code.LOCAL_AUTHENTICATION_MISSING,
        }
        self._scripts = 0

    @property
    def pi(self) -> PiSessions:
        return self._fake

    def spec(self) -> SessionSpec:
        return self._spec("scripted", "scripted-1")

    def spec_of_unknown_provider(self) -> SessionSpec:
        return self._spec("nobody", "scripted-1")

    def spec_of_unknown_model(self) -> SessionSpec:
        return self._spec("scripted", "nothing")

    def spec_without_credentials(self) -> SessionSpec:
        return self._spec("locked", "scripted-1")

    def answers(self, text: str) -> str:
        return self._script(Finishes(text=text, signs=1))

    def calls_tool_then_answers(self, text: str) -> str:
        return self._script(Finishes(text=text, signs=3))

    def stalls(self) -> str:
        return self._script(Manual())

    def fails(self) -> str:
        return self._script(Finishes("error", text=""))

    async def kill_host(self, session: PiSession) -> None:
        assert isinstance(session, FakePiSession)
        session.host.die()

    def _script(self, plan: Finishes | Manual) -> str:
        self._scripts += 1
        prompt = f"script {self._scripts}"
        self._fake.plans[prompt] = plan
        return prompt

    def _spec(self, provider: str, model: str) -> SessionSpec:
        profile = ExecutionProfile.model_validate(
            {
                "default": True,
                "permission_profile": "read-only",
                "provider": provider,
                "model": model,
                "thinking_level": "off",
            }
        )
        return SessionSpec(
            workspace="project", directory=Path("/nowhere/project"), profile_alias="reader", profile=profile
        )
