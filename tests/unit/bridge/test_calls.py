"""Calls of real servers, however these answer, or do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from anyio import to_thread

from pi_session_mcp.bridge.results import (
    BAD_ARGUMENTS,
    FAILED,
    NO_CONTENT,
    OTHER_SHAPE,
    TOO_LARGE,
    Delivered,
    Failed,
)
from pi_session_mcp.bridge.servers import MAX_CALLS, ToolCall
from pi_session_mcp.deadlines import Deadlines
from tests.support.trees import WAIT_S, survivors
from tests.unit.bridge.bench import SHORT, Bench, Calls, noted

if TYPE_CHECKING:
    from pi_session_mcp.bridge.results import Outcome

pytestmark = pytest.mark.anyio


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
        (
            '{"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "isError": false}',
            Delivered(("[Image left out: image/png, 3 bytes.]",)),
        ),
        ('{"content": []}', Delivered(())),
        ('{"content": [{"type": "text", "text": "canary"}], "isError": true}', Failed(FAILED)),
        ('{"content": [{"type": "no such type", "text": "canary"}]}', Failed(FAILED)),
        ('{"content": "canary"}', Failed(FAILED)),
        ("{}", Delivered((NO_CONTENT,))),
        ('{"content": [], "structuredContent": {"n": 1e999}}', Failed(FAILED)),
        ('{"content": [{"type": "text", "text": "half \\ud83d of it"}]}', Delivered(("half \ufffd of it",))),
        ('{"content": [], "structuredContent": {"n": %s}}' % ("9" * 5000), Failed(FAILED)),
        ('{"content": [], "structuredContent": {"n": %s}}' % ("[" * 500 + "]" * 500), Failed(FAILED)),
        ('"no object"', Failed(FAILED)),
    ],
)
async def test_what_a_server_answers_becomes_an_outcome(bench: Bench, reply: str, expected: Outcome) -> None:
    fixture = bench.fixture(replies={"echo": reply})
    async with bench.session({"library": fixture.server()}) as session:
        outcome = await Calls(session).result("mcp_library_echo")
    assert outcome == expected


PROMISED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("output", "reply", "expected"),
    [
        (PROMISED, '{"content": [], "structuredContent": {"n": 7}}', Delivered(('{"n":7}',), {"n": 7})),
        (
            PROMISED,
            '{"content": [], "structuredContent": {"n": "x"}}',
            Delivered(('{"n":"x"}', OTHER_SHAPE), {"n": "x"}),
        ),
        (PROMISED, '{"content": [{"type": "text", "text": "said"}]}', Delivered(("said", OTHER_SHAPE))),
        (PROMISED, "{}", Delivered((NO_CONTENT, OTHER_SHAPE))),
        (PROMISED, '{"content": [], "isError": true}', Failed(FAILED)),
        ({"type": "no such type"}, '{"content": [], "structuredContent": [1]}', Delivered(("[1]", OTHER_SHAPE), [1])),
        ("no schema", '{"content": [], "structuredContent": [1]}', Delivered(("[1]",), [1])),
    ],
)
async def test_a_result_that_breaks_its_own_schema_is_told_with_a_note(
    bench: Bench, output: object, reply: str, expected: Outcome
) -> None:
    described = {"name": "echo", "inputSchema": {"type": "object"}, "outputSchema": output}
    fixture = bench.fixture(tools=[described], replies={"echo": reply})
    async with bench.session({"library": fixture.server()}) as session:
        assert await Calls(session).result("mcp_library_echo") == expected


@pytest.mark.parametrize("tool", ["oversized", "flood"])
async def test_a_line_over_the_limit_fails_the_call_at_once_and_the_connection_lives(bench: Bench, tool: str) -> None:
    fixture = bench.fixture(tools=["echo", "oversized", "flood"])
    async with bench.session({"library": fixture.server("echo", tool)}) as session:
        calls = Calls(session)
        assert await calls.result(f"mcp_library_{tool}") == Failed(TOO_LARGE)
        assert await calls.result("mcp_library_echo") == Delivered(("{}",))


async def test_a_call_that_takes_too_long_fails_and_the_server_is_told(bench: Bench) -> None:
    fixture = bench.fixture(tools=["echo", "hang"])
    bounds = Deadlines(mcp_startup_s=WAIT_S, mcp_call_s=SHORT)
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
        assert survivors(dying.alive()) == []
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
