"""A valid JSON line whose id can be read is answered under that id, whatever is in it."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pi_session_mcp.server.catalog import TOOLS
from pi_session_mcp.server.tool_calls import ToolCalls
from pi_session_mcp.server.wire.protocol import Call
from pi_session_mcp.sessions.registry import Registry
from tests.fakes.pi import FakePi
from tests.support.piped import Pipes, write_all
from tests.support.served import UNKNOWN, configured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

pytestmark = pytest.mark.timeout(600)

DEEP: Final = "[" * 5000 + "]" * 5000
ODD: Final = (
    r'"\ud800"',
    r'"\udfff\ud800 text"',
    r'"\ud83d\ude00\ud83d"',
    r'"\u0000"',
    '"\u2028\x7f\u0085"',
    "1e400",
    "-1E400",
    "1e-400",
    "-0",
    "-0.0",
    "50000.0",
    "5e4",
    "9" * 400,
    "9" * 5000,
    "-" + "9" * 5000,
    DEEP,
    '{"a":' * 500 + "1" + "}" * 500,
    "[" * 127 + "]" * 127,
    r'{"\ud800":1,"\ud801":2}',
    '{"a":1,"a":{"a":2}}',
    "[]",
    "{}",
    "null",
    "true",
)
NAMES: Final = (
    "method",
    "params",
    "name",
    "arguments",
    "_meta",
    "progressToken",
    "cursor",
    "sessionId",
    "prompt",
    "waitMs",
    "workspace",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "protocolVersion",
    "capabilities",
    "clientInfo",
    "requestId",
    "level",
    "uri",
    "ref",
)
WORDS: Final = (
    "2026-07-28",
    "2025-06-18",
    UNKNOWN,
    *(tool["name"] for tool in TOOLS),
)
METHODS: Final = (
    "ping",
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "notifications/initialized",
    "notifications/cancelled",
    "",
)

texts = st.text(st.characters(exclude_categories=[]), max_size=8).map(json.dumps)
scalars = st.sampled_from(ODD) | texts | st.sampled_from(WORDS).map(json.dumps) | st.integers().map(str)
names = st.sampled_from(NAMES).map(json.dumps) | texts | st.just(r'"\ud800"')


def written_object(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{key}:{value}" for key, value in members) + "}"


def written_array(items: Sequence[str]) -> str:
    return "[" + ",".join(items) + "]"


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(names, values), max_size=4).map(written_object)


values = st.recursive(scalars, lambda inner: objects(inner) | st.lists(inner, max_size=3).map(written_array))
params = (
    objects(values)
    | values
    | st.tuples(st.sampled_from([tool["name"] for tool in TOOLS]), objects(values)).map(
        lambda call: written_object([('"name"', json.dumps(call[0])), ('"arguments"', call[1])])
    )
)
methods = st.sampled_from(METHODS).map(json.dumps) | values
extra = st.lists(st.tuples(texts | st.just('"result"'), values), max_size=2)


@st.composite
def requests(draw: st.DrawFn) -> str:
    """The text of a request of id `"it"`: with a method, and with anything else in it."""
    members = [
        ('"jsonrpc"', '"2.0"'),
        ('"id"', '"it"'),
        ('"method"', draw(methods)),
        *draw(st.lists(params.map(lambda value: ('"params"', value)), max_size=1)),
        *[(key, value) for key, value in draw(extra) if json.loads(key) not in {"id", "method"}],
    ]
    return written_object(draw(st.permutations(members)))


def calls(value: str) -> Iterator[str]:
    """Requests that have it in every place where something is read."""
    head = '{"jsonrpc":"2.0","id":"it",'
    yield head + f'"method":{value}' + "}"
    yield head + f'"method":"ping","params":{value}' + "}"
    yield head + f'"method":"ping","{UNKNOWN}":{value}' + "}"
    for method in METHODS:
        for place in ("x", "_meta", "cursor", "name", "arguments", "requestId", "progressToken", "capabilities"):
            yield head + f'"method":"{method}","params":{{"{place}":{value}}}' + "}"
        yield head + f'"method":"{method}","params":{{"_meta":{{"progressToken":{value}}}}}' + "}"
    for tool in TOOLS:
        for place in ("sessionId", "turnId", "prompt", "waitMs", "workspace", "executionProfile", "x"):
            arguments = {"sessionId": UNKNOWN, "turnId": UNKNOWN, "prompt": "look", "workspace": "docs"}
            required = {key: arguments[key] for key in tool["inputSchema"].get("required", []) if key != place}
            said = "".join(f'"{key}":"{text}",' for key, text in required.items())
            inside = f'"name":"{tool["name"]}","arguments":{{{said}"{place}":{value}}}'
            yield head + f'"method":"tools/call","params":{{{inside}}}' + "}"
    sound = '"protocolVersion":"2025-06-18","capabilities":{}'
    yield head + f'"method":"initialize","params":{{{sound},"clientInfo":{{"name":"c","version":{value}}}}}' + "}"
    yield (
        head + f'"method":"initialize","params":{{{sound},"clientInfo":{{"name":"c","version":"1","x":{value}}}}}' + "}"
    )


def envelope(line: str) -> str:
    """The same request in the era without a handshake."""
    meta = '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'
    return line.replace('"params":{', f'"params":{{"_meta":{{{meta}}},', 1).replace("},}", "}}", 1)


class Server:
    """The tools over a connection that is given lines, and what it answered."""

    def __init__(self) -> None:
        self.pipes = Pipes()

    def close(self) -> None:
        self.pipes.close()

    async def answer(self, opening: Sequence[bytes], lines: Sequence[str]) -> list[Any]:
        """What is answered to the lines after this opening."""
        pipes = self.pipes
        calls = [one for line in opening for one in [pipes.reception.take(line)] if isinstance(one, Call)]
        connection = pipes.connection(calls)
        registry = Registry(configured(), FakePi(), report=pipes.said.append)
        tools = ToolCalls(registry, configured(), pipes.said.append, lambda: None)
        sent = b"".join(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines)
        expected = len(lines) + sum(b'"id"' in line for line in opening)
        received = bytearray()
        async with registry, anyio.create_task_group() as tasks:
            tasks.start_soon(connection.write)
            tasks.start_soon(connection.serve, tools)
            tasks.start_soon(write_all, pipes.writer, sent)
            with anyio.fail_after(60):
                while received.count(b"\n") < expected:
                    await anyio.wait_readable(pipes.reader)
                    received += os.read(pipes.reader, 1 << 16)
            tasks.cancel_scope.cancel()
        return [said for line in received.splitlines() if (said := json.loads(line))["id"] != 0]


HANDSHAKE: Final = (
    (
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
    ),
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
)
UNANSWERED: Final = '{"jsonrpc":"2.0","id":"end","method":"unknown/method"}'
"""Behind the request that is tried, so that a missing answer is seen at once."""


def ids_answered(opening: Sequence[bytes], line: str) -> list[Any]:
    """The ids of all answers to a line and to another one behind it."""
    server = Server()
    try:
        answers = anyio.run(partial(server.answer, opening, [line, UNANSWERED]))
        return sorted((answer["id"] for answer in answers), reverse=True)
    finally:
        server.close()


def in_three_states(check: Callable[[Sequence[bytes], str], None], line: str) -> None:
    check((), line)
    check(HANDSHAKE, line)
    check((), envelope(line))


def is_answered(opening: Sequence[bytes], line: str) -> None:
    assert ids_answered(opening, line) == ["it", "end"], (opening, line[:300])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example('{"jsonrpc":"2.0","id":"it","method":"tools/list","params":{"_meta":{"progressToken":1e400}}}')
@given(requests())
def test_any_request_is_answered_under_its_id(line: str) -> None:
    in_three_states(is_answered, line)


@pytest.mark.parametrize("value", ODD, ids=lambda value: value[:16])
def test_an_odd_value_at_any_place_of_a_request_is_answered_under_its_id(value: str) -> None:
    lines = [line.replace('"it"', str(number)) for number, line in enumerate(calls(value), 10)]
    for opening in ((), HANDSHAKE):
        server = Server()
        answers = anyio.run(partial(server.answer, opening, lines))
        server.close()
        assert sorted(answer["id"] for answer in answers) == list(range(10, 10 + len(lines)))
