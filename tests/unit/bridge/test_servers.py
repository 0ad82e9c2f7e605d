"""Real servers on real pipes: how they are found, listed, given their environment, and ended."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pi_session_mcp.bridge.results import Delivered, Failed
from pi_session_mcp.bridge.servers import ExternalServers
from pi_session_mcp.config.model import Grant
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import Code, Refusal, Stage
from tests.support.trees import WAIT_S
from tests.unit.bridge.bench import GENEROUS, Bench, Calls, noted

if TYPE_CHECKING:
    from pi_session_mcp.bridge.results import Outcome

pytestmark = pytest.mark.anyio


# --- discovery -------------------------------------------------------------------------------------------------------


async def test_granted_tools_are_found_on_any_page_and_come_unchanged(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "title": "N", "x-more": {"a": [1, None]}}}}
    described = {"name": "deep/tool", "description": "Finds é.", "inputSchema": schema, "annotations": {"title": "T"}}
    fixture = bench.fixture(pages=[["one", "two"], [], [described]])
    grants = {"b": Grant(name="deep/tool", read_only=True), "a": Grant(name="one", read_only=True)}
    server = fixture.server().model_copy(update={"tools": grants})

    async with bench.session({"library": server}) as session:
        tools = session.tools

    assert [(tool.exposed, tool.remote) for tool in tools] == [("mcp_library_b", "deep/tool"), ("mcp_library_a", "one")]
    assert (tools[0].description, tools[0].schema) == ("Finds é.", schema)
    assert [note["page"] for note in fixture.notes("list")] == [0, 1, 2]


PLAIN = [f"tool-{number}" for number in range(513)]
UNAVAILABLE = Code.EXTERNAL_MCP_UNAVAILABLE
ANY = {"type": "object"}
ECHO = {"name": "echo", "inputSchema": ANY}
ODD_SCHEMAS: list[Any] = [None, 7, {}, {"type": "array"}, {"type": "int"}, {**ANY, "properties": {"required": ["a"]}}]


@pytest.mark.parametrize(
    ("switches", "code", "tool", "discovered"),
    [
        ({"tools": []}, Code.EXTERNAL_MCP_NO_TOOLS, None, 0),
        ({"tools": [], "pages": 3}, Code.EXTERNAL_MCP_NO_TOOLS, None, 0),
        ({"tools": ["Echo", "other"]}, Code.EXTERNAL_MCP_GRANT_TOOL_MISSING, "echo", 2),
        ({"tools": ["echo", *PLAIN[:511]]}, None, None, None),
        ({"tools": ["echo", *PLAIN[:512]]}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 512),
        ({"pages": 16}, None, None, None),
        ({"pages": 17}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 1),
        ({"pages": [["echo"], ["a"], ["b"]], "cursors": ["x", "x"]}, None, None, None),
        ({"pages": [["a"], ["b"], ["echo"]], "cursors": ["x", "x"]}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 2),
        ({"tools": ["echo", "a", "echo"]}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 2),
        ({"pages": [["echo"], ["echo"]]}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 1),
        ({"tools": ["a", "echo", "a", 7, {"name": 7}, {"name": "b", "inputSchema": 7, "icons": {}}]}, None, None, None),
        ({"tools": [{**ECHO, "description": 7, "icons": 7, "title": [], "annotations": 7}]}, None, None, None),
        ({"tools": [{**ECHO, "inputSchema": {**ANY, "required": ["a", "a"]}}]}, UNAVAILABLE, "echo", 1),
        ({"tools": [{**ECHO, "inputSchema": {**ANY, "properties": 7}}]}, UNAVAILABLE, "echo", 1),
        ({"tools": [{**ECHO, "inputSchema": {**ANY, "properties": {"n": {"type": "int"}}}}]}, UNAVAILABLE, "echo", 1),
        ({"tools": [{**ECHO, "inputSchema": {"type": "array"}}]}, UNAVAILABLE, "echo", 1),
        ({"tools": [{"name": "echo"}]}, UNAVAILABLE, "echo", 1),
        *(({"tools": ["echo", {"name": "a", "inputSchema": odd}]}, None, None, None) for odd in ODD_SCHEMAS),
    ],
)
async def test_each_failure_of_discovery_has_its_code(
    bench: Bench, switches: dict[str, Any], code: Code | None, tool: str | None, discovered: int | None
) -> None:
    servers = {"library": bench.fixture(**switches).server("echo")}
    if code is None:
        async with bench.session(servers) as session:
            assert len(session.tools) == 1
        return

    refusal = await bench.refused(servers)

    assert refusal.code is code
    assert (refusal.server, refusal.tool) == ("library", tool)
    assert refusal.discovered_tools == discovered


@pytest.mark.parametrize("start", ["exit", "endless", "nameless", "asks", "tells", "chatters"])
async def test_a_server_that_does_not_speak_is_unavailable_at_once(bench: Bench, start: str) -> None:
    refusal = await bench.refused({"library": bench.fixture(start=start).server()})
    assert (refusal.code, refusal.server) == (Code.EXTERNAL_MCP_UNAVAILABLE, "library")


async def test_a_command_that_is_not_there_is_unavailable(bench: Bench) -> None:
    missing = bench.fixture().server().model_copy(update={"command": "/does/not/exist"})
    assert (await bench.refused({"library": missing})).code is Code.EXTERNAL_MCP_UNAVAILABLE


@pytest.mark.parametrize(
    "switches", [{"start": "silent"}, {"hold": "list"}, {"start": "slow", "go": "/does/not/exist"}]
)
async def test_a_server_that_is_late_is_unavailable_and_ends(bench: Bench, switches: dict[str, Any]) -> None:
    late, ready = bench.fixture(**switches), bench.fixture()
    bounds = Deadlines(mcp_startup_s=1.0, mcp_call_s=WAIT_S)

    refusal = await bench.refused({"ready": ready.server(), "late": late.server()}, bounds)

    assert (refusal.code, refusal.server) == (Code.EXTERNAL_MCP_UNAVAILABLE, "late")


async def test_a_server_that_starts_slowly_is_waited_for_and_others_connect_meanwhile(bench: Bench) -> None:
    go = bench.directory / "go"
    slow, quick = bench.fixture(start="slow", go=str(go)), bench.fixture()
    async with ExternalServers(os.environ, GENEROUS) as external:
        session = external.start({"slow": slow.server(), "quick": quick.server()}, bench.directory)
        await noted(quick, "list")
        assert not session.is_ready
        go.touch()
        await session.ready()
        assert [tool.exposed for tool in session.tools] == ["mcp_slow_echo", "mcp_quick_echo"]
        await session.end()
    assert bench.alive() == []


async def test_garbage_on_stdout_and_floods_on_stderr_change_nothing(bench: Bench) -> None:
    fixture = bench.fixture(start="garbage", noise=True)
    async with bench.session({"library": fixture.server()}) as session:
        assert await Calls(session).result("mcp_library_echo", {"a": 1}) == Delivered(('{"a": 1}',))


# --- environment -----------------------------------------------------------------------------------------------------


async def test_a_server_gets_the_fixed_set_and_what_was_named_and_runs_in_the_workspace(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_TOKEN", "the value")
    monkeypatch.setenv("CANARY", "canary")
    server = bench.fixture(tools=["environment"]).server("environment", env_from={"API_KEY": "HOST_TOKEN"})
    async with bench.session({"library": server}) as session:
        outcome = await Calls(session).result("mcp_library_environment")

    assert isinstance(outcome, Delivered)
    told = json.loads(outcome.texts[0])
    assert told["directory"] == str(bench.directory.resolve())
    assert told["environment"]["API_KEY"] == "the value"
    assert told["environment"].keys() <= {"API_KEY", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


async def test_a_named_variable_that_is_missing_starts_nothing(bench: Bench) -> None:
    fine, lacking = bench.fixture(), bench.fixture()
    async with ExternalServers({"PATH": os.environ["PATH"]}, GENEROUS) as external:
        with pytest.raises(Refusal) as refusal:
            external.start(
                {"fine": fine.server(), "lacking": lacking.server(env_from={"API_KEY": "NOWHERE"})}, bench.directory
            )
    assert (refusal.value.code, refusal.value.server) == (Code.EXTERNAL_MCP_UNAVAILABLE, "lacking")
    assert refusal.value.stage is Stage.MCP_TOOLS
    assert fine.notes() == lacking.notes() == []


# --- the end ---------------------------------------------------------------------------------------------------------


async def test_closing_ends_the_input_first_and_a_server_that_listens_just_ends(bench: Bench) -> None:
    fixture = bench.fixture()
    async with bench.session({"library": fixture.server()}) as session:
        session.close()
        session.close()
        await session.end()
        assert await Calls(session).result("mcp_library_echo") == Failed()
    assert [note["event"] for note in fixture.notes()] == ["start", "list", "end of input"]


async def test_a_server_that_ignores_everything_is_ended_with_all_that_it_started(bench: Bench) -> None:
    fixture = bench.fixture(deaf=True, child=True)
    async with bench.session({"library": fixture.server()}):
        assert len(fixture.alive()) == 2
    events = [note["event"] for note in fixture.notes()]
    assert events.index("end of input") < events.index("term")


async def test_what_a_server_leaves_is_ended_with_it(bench: Bench) -> None:
    fixture = bench.fixture(child=True)
    async with bench.session({"library": fixture.server()}):
        assert len(fixture.alive()) == 2


async def test_calls_under_way_end_with_the_session(bench: Bench) -> None:
    fixture = bench.fixture(tools=["hang"])
    outcomes: list[Outcome] = []
    async with bench.session({"library": fixture.server("hang")}) as session:
        Calls(session).begin("mcp_library_hang", {}, answer=outcomes.append)
        await noted(fixture, "call")
    assert outcomes == [Failed()]


async def test_a_caller_who_is_cancelled_while_connecting_leaves_nothing(bench: Bench) -> None:
    fixture = bench.fixture(start="silent")
    async with anyio.create_task_group() as tasks:

        async def connect() -> None:
            async with bench.session({"library": fixture.server()}):
                raise AssertionError("it cannot be ready")

        tasks.start_soon(connect)
        await noted(fixture, "silent")
        tasks.cancel_scope.cancel()
    assert bench.alive() == []


async def test_stopping_reaches_what_is_still_connecting_and_nothing_else(bench: Bench) -> None:
    silent, ready = bench.fixture(start="silent"), bench.fixture()
    async with ExternalServers(os.environ, GENEROUS) as external:
        open_session = external.start({"library": ready.server()}, bench.directory)
        await open_session.ready()
        connecting = external.start({"library": silent.server()}, bench.directory)
        await noted(silent, "silent")

        external.stop()

        with pytest.raises(Refusal):
            await connecting.ready()
        await connecting.end()
        assert silent.alive() == []
        assert await Calls(open_session).result("mcp_library_echo") == Delivered(("{}",))
        with pytest.raises(Refusal):
            external.start({"library": ready.server()}, bench.directory)
    assert bench.alive() == []


async def test_leaving_ends_what_nobody_has_closed(bench: Bench) -> None:
    fixture, silent = bench.fixture(), bench.fixture(start="silent")
    async with ExternalServers(os.environ, GENEROUS) as external:
        await external.start({"library": fixture.server()}, bench.directory).ready()
        external.start({"library": silent.server()}, bench.directory)
        await noted(silent, "silent")
    assert bench.alive() == []


async def test_sessions_share_no_process_and_one_without_servers_has_none(bench: Bench) -> None:
    fixture = bench.fixture()
    servers = {"library": fixture.server()}
    async with ExternalServers(os.environ, GENEROUS) as external:
        none, one, two = (external.start(each, bench.directory) for each in ({}, servers, servers))
        for session in (none, one, two):
            await session.ready()
        assert none.tools == ()
        assert one.tools == two.tools
        assert len(set(fixture.pids)) == len(fixture.alive()) == 2
        await one.end()
        assert len(fixture.alive()) == 1
        assert await Calls(two).result("mcp_library_echo") == Delivered(("{}",))


async def test_connections_leave_no_descriptor(bench: Bench) -> None:
    servers = {"library": bench.fixture().server()}
    async with bench.session(servers):
        pass
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        async with bench.session(servers) as session:
            await Calls(session).result("mcp_library_echo")
    assert len(os.listdir("/dev/fd")) == before
