"""Whatever a server answers, asks or tells: its call fails at once, and nobody else notices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from pi_session_mcp.bridge.catalog import GrantedTool
from pi_session_mcp.bridge.judge import Judge
from pi_session_mcp.bridge.results import Delivered, Failed
from pi_session_mcp.bridge.servers import SessionServers, ToolCall
from tests.support.trees import WAIT_S, survivors
from tests.unit.bridge.bench import Bench, Calls

if TYPE_CHECKING:
    from pi_session_mcp.bridge.results import Outcome

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("tool", ["wrong", "nameless", "empty", "deep", "long", "infinite", "broken"])
async def test_an_answer_that_cannot_be_taken_fails_the_call_at_once_and_the_connection_lives(
    bench: Bench, tool: str
) -> None:
    fixture = bench.fixture(tools=["echo", tool])
    async with bench.session({"library": fixture.server("echo", tool)}) as session:
        calls = Calls(session)
        assert await calls.result(f"mcp_library_{tool}") == Failed()
        assert await calls.result("mcp_library_echo", {"n": 1}) == Delivered(('{"n": 1}',))


@pytest.mark.parametrize("tool", ["unversioned", "quoted"])
async def test_an_answer_that_can_be_repaired_is_delivered(bench: Bench, tool: str) -> None:
    fixture = bench.fixture(tools=[tool])
    async with bench.session({"library": fixture.server(tool)}) as session:
        assert await Calls(session).result(f"mcp_library_{tool}") == Delivered(("half \ufffd",))


async def test_of_two_answers_the_first_counts_and_the_second_does_no_harm(bench: Bench) -> None:
    fixture = bench.fixture(tools=["echo", "twice"])
    async with bench.session({"library": fixture.server("echo", "twice")}) as session:
        calls = Calls(session)
        for _ in range(3):
            assert await calls.result("mcp_library_twice") == Delivered(("once",))
            assert await calls.result("mcp_library_echo", {"n": 1}) == Delivered(('{"n": 1}',))


async def test_a_server_may_ask_whether_we_are_alive_and_for_nothing_else(bench: Bench) -> None:
    fixture = bench.fixture(tools=["ping"])
    async with bench.session({"library": fixture.server("ping")}) as session:
        outcome = await Calls(session).result("mcp_library_ping")
    assert isinstance(outcome, Delivered)
    assert json.loads(outcome.texts[0]) == [["p", {}, None], [7, None, -32601]]


@pytest.mark.parametrize("tool", ["asks", "tells", "chatters"])
async def test_a_server_that_never_stops_is_ended_and_others_go_on(bench: Bench, tool: str) -> None:
    flooding, other = bench.fixture(tools=["echo", tool]), bench.fixture()
    servers = {"flooding": flooding.server("echo", tool), "other": other.server()}
    async with bench.session(servers) as session:
        calls = Calls(session)
        assert await calls.result(f"mcp_flooding_{tool}") == Failed()
        assert await calls.result("mcp_other_echo", {"n": 1}) == Delivered(('{"n": 1}',))
        assert await calls.result("mcp_flooding_echo") == Failed()
        assert await to_thread.run_sync(survivors, flooding.alive()) == []


async def test_a_server_that_answers_a_notification_is_forgiven(bench: Bench) -> None:
    fixture = bench.fixture(start="indignant")
    async with bench.session({"library": fixture.server()}) as session:
        assert await Calls(session).result("mcp_library_echo", {"n": 1}) == Delivered(('{"n": 1}',))


class Raising:
    """A connection with a defect that nobody has foreseen."""

    is_settled = True
    tools = (GrantedTool("mcp_library_echo", "echo", "", {"type": "object"}),)

    async def ready(self) -> None:
        pass

    async def call(self, *_: object) -> Outcome:
        raise ZeroDivisionError


async def test_whatever_a_call_raises_is_the_failure_of_that_call() -> None:
    outcomes: list[Outcome] = []
    async with anyio.create_task_group() as tasks:
        connections: Any = {"library": Raising()}
        session = SessionServers(tasks, connections, Judge(WAIT_S, WAIT_S), WAIT_S, lambda _: None)
        await session.ready()
        session.begin(ToolCall(1, "mcp_library_echo", "{}", "{}"), outcomes.append)
    assert outcomes == [Failed()]


async def test_what_cannot_be_read_while_connecting_refuses_the_start_at_once(bench: Bench) -> None:
    described = {"name": "echo", "inputSchema": {"type": "object", "properties": {"n": {"const": 1e999}}}}
    deep: object = {}
    for _ in range(400):
        deep = {"a": deep}
    for tools in ([described], ["echo", {"name": "other", "inputSchema": deep}]):
        refusal = await bench.refused({"library": bench.fixture(tools=tools).server()})
        assert refusal.server == "library"
