"""A registry over the in-memory Pi, for the tests of sessions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.config.model import Configuration, ExecutionProfile, RuntimeOverride
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.sessions.outcome import outcome_of
from pi_session_mcp.sessions.registry import Registry
from tests.fakes.pi import FakePi, FakePiSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pi_session_mcp.diagnostics import Diagnostic
    from pi_session_mcp.sessions.views import SessionView, TurnView

DEADLINES: Final = Deadlines()
"""The real ones: in these tests time passes only virtually."""

DONE: Final = outcome_of("stop", aborted=False, text="done")


def configuration(max_sessions: int = 8) -> Configuration:
    """Two workspaces, and a read-only and a coding profile."""
    shared = {"provider": "scripted", "model": "scripted-1", "thinking_level": "off"}
    return Configuration(
        workspaces={"project": Path("/nowhere/project"), "other": Path("/nowhere/other")},
        execution_profiles={
            "reader": ExecutionProfile.model_validate({"default": True, "permission_profile": "read-only", **shared}),
            "coder": ExecutionProfile.model_validate({"permission_profile": "coding", **shared}),
        },
        max_sessions=max_sessions,
        pi_agent_directory=None,
        runtime=RuntimeOverride(),
        fingerprint="sha256:" + "0" * 64,
    )


class Wall:
    """A wall clock that moves on by one second a reading, or jumps."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


@dataclass
class World:
    """The registry under test, and what surrounds it."""

    pi: FakePi
    registry: Registry
    wall: Wall
    diagnostics: list[Diagnostic] = field(default_factory=list)

    async def start(self) -> tuple[SessionView, FakePiSession]:
        """A new session and its other side."""
        view = await self.registry.start("project")
        return view, self.pi.sessions[-1]

    async def running(self) -> tuple[SessionView, TurnView, FakePiSession]:
        """A new session with a running turn, and its other side."""
        view, pi = await self.start()
        view, turn = await self.registry.prompt(view.id, "work")
        return view, turn, pi


@asynccontextmanager
async def world(max_sessions: int = 8, deadlines: Deadlines = DEADLINES) -> AsyncIterator[World]:
    """A registry that is shut down at the end; everything created must then have been disposed of, without a defect."""
    pi, wall = FakePi(), Wall()
    diagnostics: list[Diagnostic] = []
    registry = Registry(configuration(max_sessions), pi, report=diagnostics.append, deadlines=deadlines, wall=wall)
    async with registry:
        yield World(pi, registry, wall, diagnostics)
    assert registry.list() == ()
    assert registry.is_idle


class Asked:
    """A request of a client, running as a task of its own; it can be cancelled as the MCP server cancels requests."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.refusal: Code | None = None
        self.result: object = None
        self.was_cancelled = False
        self.ended = anyio.Event()

    async def run(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do `work` and note what came of it."""
        try:
            with self.scope:
                self.result = await work()
        except Refusal as refusal:
            self.refusal = refusal.code
        finally:
            self.was_cancelled = self.scope.cancelled_caught
            self.ended.set()


async def settle() -> None:
    """Return when everything that can happen without time passing has happened."""
    await anyio.sleep(0.000_001)
