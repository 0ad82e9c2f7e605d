"""However few descriptors are free: a session starts or is refused, and nothing of it is left open."""

from __future__ import annotations

import os
from contextlib import suppress

import anyio
import pytest

from pi_session_mcp.bridge.judge import Judge
from pi_session_mcp.bridge.results import Delivered
from pi_session_mcp.bridge.servers import ExternalServers
from pi_session_mcp.errors import Refusal
from tests.support.descriptors import few_descriptors, opened
from tests.support.trees import WAIT_S
from tests.unit.bridge.bench import GENEROUS, Bench, Calls

pytestmark = pytest.mark.anyio


async def test_a_session_that_cannot_start_a_server_is_refused_and_the_next_one_is_not(bench: Bench) -> None:
    servers = {"library": bench.fixture().server()}
    async with bench.session(servers) as session:
        assert await Calls(session).result("mcp_library_echo") == Delivered(("{}",))
    before = opened()
    for free in range(0, 24, 3):
        with few_descriptors(free):
            async with ExternalServers(os.environ, GENEROUS) as external:
                session = external.start(servers, bench.directory)
                with suppress(Refusal):
                    await session.ready()
                    await Calls(session).result("mcp_library_echo")
                await session.end()
        assert opened() == before
        assert bench.alive() == []


async def test_a_judge_that_cannot_be_started_has_no_answer() -> None:
    judge = Judge(WAIT_S, 600.0)
    async with anyio.create_task_group() as tasks:
        with few_descriptors(2):
            tasks.start_soon(judge.run)
            assert await judge.keeps('{"type":"object"}', "{}") is None
        assert await judge.keeps('{"type":"object"}', "{}") is True
        judge.close()
