"""Fixture servers of one test, the sessions that have them, and calls of those."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from pi_session_mcp.bridge.servers import ExternalServers, SessionServers, ToolCall
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import Refusal, Stage
from tests.support.external import Fixture
from tests.support.trees import WAIT_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from pi_session_mcp.bridge.results import Outcome
    from pi_session_mcp.config.model import McpServer

GENEROUS = Deadlines(mcp_startup_s=WAIT_S, mcp_call_s=WAIT_S)
SHORT = 0.3
"""A bound that a test waits out."""


class Bench:
    """Fixture servers of one test, and sessions that have them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.fixtures: list[Fixture] = []

    def fixture(self, **switches: Any) -> Fixture:
        fixture = Fixture(self.directory / f"notes-{len(self.fixtures)}", **switches)
        self.fixtures.append(fixture)
        return fixture

    def alive(self) -> list[int]:
        return [process.pid for fixture in self.fixtures for process in fixture.alive()]

    @asynccontextmanager
    async def session(
        self, servers: dict[str, McpServer], bounds: Deadlines = GENEROUS
    ) -> AsyncIterator[SessionServers]:
        async with ExternalServers(os.environ, bounds) as external:
            session = external.start(servers, self.directory)
            try:
                await session.ready()
                yield session
            finally:
                with anyio.CancelScope(shield=True):
                    await session.end()
                assert self.alive() == []

    async def refused(self, servers: dict[str, McpServer], bounds: Deadlines = GENEROUS) -> Refusal:
        async with ExternalServers(os.environ, bounds) as external:
            session = external.start(servers, self.directory)
            with pytest.raises(Refusal) as refusal:
                await session.ready()
            await session.end()
            assert self.alive() == []
        assert refusal.value.stage is Stage.MCP_TOOLS
        return refusal.value


def ignored(_: Outcome) -> None:
    pass


class Calls:
    """Calls of one session, numbered."""

    def __init__(self, session: SessionServers) -> None:
        self._session = session
        self.last = 0

    def begin(
        self, tool: str, arguments: object, given: object = None, answer: Callable[[Outcome], None] = ignored
    ) -> int:
        self.last += 1
        given = arguments if given is None else given
        self._session.begin(ToolCall(self.last, tool, json.dumps(arguments), json.dumps(given)), answer)
        return self.last

    async def result(self, tool: str, arguments: object = None, given: object = None) -> Outcome:
        done = anyio.Event()
        outcomes: list[Outcome] = []

        def answer(outcome: Outcome) -> None:
            outcomes.append(outcome)
            done.set()

        self.begin(tool, {} if arguments is None else arguments, given, answer)
        with anyio.fail_after(WAIT_S):
            await done.wait()
        (outcome,) = outcomes
        return outcome


async def noted(fixture: Fixture, event: str, count: int = 1) -> list[dict[str, Any]]:
    return await to_thread.run_sync(fixture.wait_for, event, count)
