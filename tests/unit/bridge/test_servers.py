"""Real servers on real pipes: connecting, listing, calling and ending, however they misbehave."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from pi_session_mcp.bridge.results import BAD_ARGUMENTS, FAILED, TOO_LARGE, Delivered, Failed
from pi_session_mcp.bridge.servers import MAX_CALLS, BridgeBounds, ExternalServers, SessionServers, ToolCall
from pi_session_mcp.config.model import Grant, McpServer
from pi_session_mcp.errors import Code, Refusal, Stage
from tests.support.external import Fixture
from tests.support.trees import WAIT_S, kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from pi_session_mcp.bridge.results import Outcome

pytestmark = pytest.mark.anyio

GENEROUS = BridgeBounds(startup_s=WAIT_S, call_s=WAIT_S)
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
        self, servers: dict[str, McpServer], bounds: BridgeBounds = GENEROUS
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

    async def refused(self, servers: dict[str, McpServer], bounds: BridgeBounds = GENEROUS) -> Refusal:
        async with ExternalServers(os.environ, bounds) as external:
            session = external.start(servers, self.directory)
            with pytest.raises(Refusal) as refusal:
                await session.ready()
            await session.end()
            assert self.alive() == []
        assert refusal.value.stage is Stage.MCP_TOOLS
        return refusal.value


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    kill_all([process for fixture in bench.fixtures for process in fixture.alive()])


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
        ({"pages": [["echo"], ["a"], ["b"]], "cursors": ["x", "x"]}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 2),
        ({"tools": ["echo", "a", "echo"]}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 2),
        ({"pages": [["echo"], ["echo"]]}, Code.EXTERNAL_MCP_UNAVAILABLE, None, 1),
        ({"tools": ["echo", {"name": "a", "inputSchema": {"type": "object", "required": ["a", "a"]}}]}, None, None, 1),
        ({"tools": ["echo", {"name": "a", "inputSchema": {"type": "object", "properties": 7}}]}, None, None, None),
        ({"tools": ["echo", {"name": "a", "inputSchema": {"type": "array"}}]}, None, None, None),
        ({"tools": ["echo", {"name": "a"}]}, None, None, None),
        ({"tools": ["echo", {"name": 7, "inputSchema": {"type": "object"}}]}, None, None, None),
    ],
)
async def test_each_failure_of_discovery_has_its_code(
    bench: Bench, switches: dict[str, Any], code: Code | None, tool: str | None, discovered: int | None
) -> None:
    malformed = code is None and any(isinstance(one, dict) for one in switches.get("tools", ()))
    servers = {"library": bench.fixture(**switches).server("echo")}
    if code is None and not malformed:
        async with bench.session(servers) as session:
            assert len(session.tools) == 1
        return

    refusal = await bench.refused(servers)

    assert refusal.code is (Code.EXTERNAL_MCP_UNAVAILABLE if malformed else code)
    assert (refusal.server, refusal.tool) == ("library", tool)
    assert refusal.discovered_tools == discovered


@pytest.mark.parametrize("start", ["exit", "endless"])
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
    bounds = BridgeBounds(startup_s=1.0, call_s=WAIT_S)

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


# --- calls -----------------------------------------------------------------------------------------------------------

TYPED = {
    "name": "echo",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
}


@pytest.mark.parametrize(
    ("arguments", "given"),
    [({"n": "7"}, {"n": "7"}), ({"n": 7}, {"n": "7"}), ({"n": 1}, {"n": 1.5}), ({"m": 1}, {}), ([], []), ("x", {})],
)
async def test_arguments_that_break_the_schema_never_reach_the_server(
    bench: Bench, arguments: object, given: object
) -> None:
    fixture = bench.fixture(tools=[TYPED])
    async with bench.session({"library": fixture.server()}) as session:
        calls = Calls(session)
        assert await calls.result("mcp_library_echo", arguments, given) == Failed(BAD_ARGUMENTS)
        assert await calls.result("mcp_library_echo", {"n": 7}) == Delivered(('{"n": 7}',))
    assert [note["arguments"] for note in fixture.notes("call")] == [{"n": 7}]


@pytest.mark.parametrize("text", ["", "no json", '{"n": NaN}', '{"n": "\\ud800"}', "[" * 10_000, '{"n":1'])
async def test_arguments_that_are_no_json_never_reach_the_server(bench: Bench, text: str) -> None:
    fixture = bench.fixture()
    outcomes: list[Outcome] = []
    async with bench.session({"library": fixture.server()}) as session:
        session.begin(ToolCall(98, "mcp_library_echo", text, "{}"), outcomes.append)
        session.begin(ToolCall(99, "mcp_library_echo", "{}", text), outcomes.append)
        assert await Calls(session).result("mcp_library_echo") == Delivered(("{}",))
    assert outcomes == [Failed(BAD_ARGUMENTS)] * 2
    assert len(fixture.notes("call")) == 1


async def test_only_granted_tools_can_be_called(bench: Bench) -> None:
    fixture = bench.fixture(tools=["echo", "other"])
    async with bench.session({"library": fixture.server("echo")}) as session:
        for name in ("mcp_library_other", "other", "echo", "mcp_other_echo", ""):
            assert await Calls(session).result(name) == Failed()
    assert fixture.notes("call") == []


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"content": [{"type": "text", "text": "said"}]}', Delivered(("said",))),
        ('{"content": [], "structuredContent": {"a": [1]}}', Delivered(('{"a":[1]}',), {"a": [1]})),
        ('{"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "isError": false}', None),
        ('{"content": []}', Delivered(())),
        ('{"content": [{"type": "text", "text": "canary"}], "isError": true}', Failed(FAILED)),
        ('{"content": [{"type": "no such type", "text": "canary"}]}', Failed(FAILED)),
        ('{"content": "canary"}', Failed(FAILED)),
        ("{}", Failed(FAILED)),
        ('{"content": [], "structuredContent": {"n": 1e999}}', Failed(FAILED)),
    ],
)
async def test_what_a_server_answers_becomes_an_outcome(bench: Bench, reply: str, expected: Outcome | None) -> None:
    fixture = bench.fixture(replies={"echo": reply})
    async with bench.session({"library": fixture.server()}) as session:
        outcome = await Calls(session).result("mcp_library_echo")
    if expected is None:
        expected = Delivered(('{"type":"image","data":"AAAA","mimeType":"image/png"}',))
    assert outcome == expected


async def test_a_result_that_breaks_its_own_schema_fails(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    described = {"name": "echo", "inputSchema": {"type": "object"}, "outputSchema": schema}
    fixture = bench.fixture(tools=[described], replies={"echo": '{"content": [], "structuredContent": {"n": "x"}}'})
    async with bench.session({"library": fixture.server()}) as session:
        assert await Calls(session).result("mcp_library_echo") == Failed(FAILED)


@pytest.mark.parametrize("tool", ["oversized", "flood"])
async def test_a_line_over_the_limit_fails_the_call_at_once_and_the_connection_lives(bench: Bench, tool: str) -> None:
    fixture = bench.fixture(tools=["echo", "oversized", "flood"])
    async with bench.session({"library": fixture.server("echo", tool)}) as session:
        calls = Calls(session)
        assert await calls.result(f"mcp_library_{tool}") == Failed(TOO_LARGE)
        assert await calls.result("mcp_library_echo") == Delivered(("{}",))


async def test_a_call_that_takes_too_long_fails_and_the_server_is_told(bench: Bench) -> None:
    fixture = bench.fixture(tools=["echo", "hang"])
    bounds = BridgeBounds(startup_s=WAIT_S, call_s=SHORT)
    async with bench.session({"library": fixture.server("echo", "hang")}, bounds) as session:
        calls = Calls(session)
        assert await calls.result("mcp_library_hang") == Failed()
        await noted(fixture, "cancelled")
        assert await calls.result("mcp_library_echo") == Delivered(("{}",))


async def test_a_cancelled_call_fails_at_once_and_the_server_is_told(bench: Bench) -> None:
    fixture = bench.fixture(tools=["echo", "hang"])
    outcomes: list[Outcome] = []
    async with bench.session({"library": fixture.server("echo", "hang")}) as session:
        calls = Calls(session)
        number = calls.begin("mcp_library_hang", {}, answer=outcomes.append)
        await noted(fixture, "call")
        session.cancel(number)
        session.cancel(number)
        session.cancel(999)
        await noted(fixture, "cancelled")
        assert outcomes == [Failed()]
        assert await calls.result("mcp_library_echo") == Delivered(("{}",))


async def test_a_server_that_dies_in_a_call_fails_it_and_all_later_ones(bench: Bench) -> None:
    dying, living = bench.fixture(tools=["die"]), bench.fixture()
    async with bench.session({"dying": dying.server("die"), "living": living.server()}) as session:
        calls = Calls(session)
        assert await calls.result("mcp_dying_die") == Failed()
        assert await calls.result("mcp_dying_die") == Failed()
        assert await calls.result("mcp_living_echo") == Delivered(("{}",))
        assert dying.alive() == []
    assert len(dying.notes("call")) == 1


async def test_a_keeper_that_is_killed_takes_its_server_with_it(bench: Bench) -> None:
    fixture, other = bench.fixture(), bench.fixture()
    async with bench.session({"library": fixture.server(), "other": other.server()}) as session:
        (server,) = fixture.alive()
        keeper = server.parent()
        assert keeper is not None
        keeper.kill()
        calls = Calls(session)
        await to_thread.run_sync(survivors, [server])
        assert fixture.alive() == []
        assert await calls.result("mcp_library_echo") == Failed()
        assert await calls.result("mcp_other_echo") == Delivered(("{}",))


async def test_a_session_has_only_so_many_calls_at_a_time(bench: Bench) -> None:
    fixture = bench.fixture(tools=["echo", "hang"])
    outcomes: list[Outcome] = []
    async with bench.session({"library": fixture.server("echo", "hang")}) as session:
        calls = Calls(session)
        for _ in range(MAX_CALLS):
            calls.begin("mcp_library_hang", {}, answer=outcomes.append)
        await noted(fixture, "call", MAX_CALLS)
        assert await calls.result("mcp_library_echo") == Failed()
        assert outcomes == []
    assert outcomes == [Failed()] * MAX_CALLS


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
    for _ in range(20):
        async with bench.session(servers) as session:
            await Calls(session).result("mcp_library_echo")
    assert len(os.listdir("/dev/fd")) == before
