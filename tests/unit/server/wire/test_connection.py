"""The connection over real pipes: order, bounds, cancellation, and endings that are awkward to reach from outside."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from pi_session_mcp.server.process.descriptors import Inlet
from pi_session_mcp.server.wire import frames, reception
from pi_session_mcp.server.wire.protocol import Call, Reply
from tests.support.piped import Pipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path

    from pi_session_mcp.sessions.turn import OnProgress

pytestmark = pytest.mark.anyio

HELLO = (
    b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
)


FIRST: Any = {"as": "first", "wait": True}
RAISE: Any = {"raise": True}


class Deeds:
    """Tools whose arguments say what they do."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()
        self.begun: list[Any] = []
        self.ended: list[Any] = []

    async def call(self, _name: str, arguments: Mapping[str, Any] | None, tell: OnProgress | None) -> Reply:
        said = dict(arguments or {})
        self.begun.append(said.get("as"))
        try:
            if said.get("raise"):
                raise RuntimeError("canary")
            if tell is not None:
                await tell(1)
                await tell(2)
            if said.get("wait"):
                await self.go_on.wait()
        finally:
            self.ended.append(said.get("as"))
        structure = {"number": float("nan")} if said.get("nan") else {"big": "x" * said.get("size", 0)}
        return Reply("text", structure, is_error=False)


def ping(message_id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % message_id


def call(message_id: int | str, token: str | None = None, **arguments: Any) -> bytes:
    params: dict[str, Any] = {"name": "pi_session_list", "arguments": arguments}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    said = {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}
    return json.dumps(said).encode() + b"\n"


def cancel(message_id: int | str) -> bytes:
    params = {"requestId": message_id}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode() + b"\n"


class Client:
    """The other side of a connection that runs."""

    def __init__(self, pipes: Pipes) -> None:
        self.pipes = pipes
        self.deeds = Deeds()
        self.connection = pipes.connection()
        self.tasks = anyio.create_task_group()
        self._received = b""
        self._early: list[dict[str, Any]] = []

    async def begin(self, *lines: bytes) -> None:
        """Shake hands, send the lines, and let the connection run."""
        os.write(self.pipes.writer, HELLO + b"".join(lines))
        self.tasks.start_soon(self.connection.write)
        self.tasks.start_soon(self.connection.serve, self.deeds)
        while (said := await self._frame()).get("id") != "hello":
            self._early.append(said)

    def send(self, *lines: bytes) -> None:
        os.write(self.pipes.writer, b"".join(lines))

    async def next(self) -> dict[str, Any]:
        """The next frame."""
        return self._early.pop(0) if self._early else await self._frame()

    async def _frame(self) -> dict[str, Any]:
        with anyio.fail_after(20):
            while b"\n" not in self._received:
                await anyio.wait_readable(self.pipes.reader)
                self._received += os.read(self.pipes.reader, 1 << 16)
        line, _, self._received = self._received.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    async def all_blocked(self) -> None:
        """Let the connection take what was sent, and do what it can."""
        self.send(b'{"jsonrpc":"2.0","id":"taken","method":"ping"}\n')
        while (said := await self._frame()).get("id") != "taken":
            self._early.append(said)
        await anyio.wait_all_tasks_blocked()

    @property
    def reasons(self) -> list[str | None]:
        return [each.reason for each in self.pipes.said]


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


@pytest.fixture
async def client(pipes: Pipes) -> AsyncIterator[Client]:
    made = Client(pipes)
    async with made.tasks:
        yield made
        made.tasks.cancel_scope.cancel()


async def test_calls_that_waited_are_made_first_and_answers_come_as_they_are_ready(client: Client) -> None:
    waited = Call(0, "pi_session_list", {"as": "waited"}, None)
    client.connection = client.pipes.connection([waited])
    await client.begin(call(1, None, **FIRST), call(2, **{"as": "second"}), ping(3))

    assert sorted([(await client.next())["id"] for _ in range(3)]) == [0, 2, 3]
    client.deeds.go_on.set()
    assert (await client.next())["id"] == 1
    assert client.deeds.begun == ["waited", "first", "second"]


async def test_a_bad_line_is_answered_and_the_next_one_is_read(client: Client) -> None:
    await client.begin(b"no json\n", ping(1))

    assert (await client.next())["error"]["code"] == -32700
    assert (await client.next())["id"] == 1
    assert client.reasons == ["parse"]


async def test_the_end_of_input_is_told_and_calls_in_flight_are_still_answered(client: Client) -> None:
    await client.begin(call(1, wait=True))
    client.pipes.hang_up(client.pipes.writer)
    with anyio.fail_after(20):
        await client.connection.over.wait()
    client.deeds.go_on.set()

    assert (await client.next())["id"] == 1


async def test_a_file_is_read_to_its_end(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(HELLO + ping(1) + ping(2).rstrip())
    client.pipes.inlet = Inlet(os.open(path, os.O_RDONLY))
    client.connection = client.pipes.connection()
    client.tasks.start_soon(client.connection.serve, client.deeds)

    assert [(await client.next())["id"] for _ in range(3)] == ["hello", 1, 2]
    assert client.pipes.inlet.fd is not None
    os.close(client.pipes.inlet.fd)


@pytest.mark.parametrize("name", [7, "7"])
async def test_a_cancelled_call_is_never_answered_and_its_id_is_free_again(client: Client, name: int | str) -> None:
    await client.begin(call(7, wait=True, **{"as": "cancelled"}))
    await client.all_blocked()
    client.send(cancel(name))
    await client.all_blocked()
    client.send(call(7, **{"as": "again"}))

    assert (await client.next())["result"]["structuredContent"] == {"big": ""}
    assert client.deeds.ended == ["cancelled", "again"]
    assert client.pipes.reception.is_settled


async def test_a_cancellation_in_the_same_breath_as_its_call_ends_it(client: Client) -> None:
    await client.begin(call(1, wait=True), cancel(1), ping(2))

    assert (await client.next())["id"] == 2
    await anyio.wait_all_tasks_blocked()
    assert client.pipes.reception.is_settled


async def test_an_id_that_is_in_flight_is_refused_and_the_call_goes_on(client: Client) -> None:
    await client.begin(call(1, wait=True), call("1"), ping(1))

    for _ in range(2):
        assert (await client.next())["error"]["message"] == "Request id is already in flight"
    client.deeds.go_on.set()
    assert "result" in await client.next()


async def test_progress_is_told_before_the_answer_and_only_to_who_wants_it(client: Client) -> None:
    await client.begin(call(1), call(2, token="t"))

    said = [await client.next() for _ in range(4)]
    assert [one["params"]["progress"] for one in said if "method" in one] == [1, 2]
    assert said[-1]["id"] == 2


async def test_an_exception_of_a_tool_is_an_internal_error_without_its_text(client: Client) -> None:
    await client.begin(call(1, None, **RAISE), ping(2))

    answers = {one["id"]: one for one in [await client.next(), await client.next()]}
    assert answers[1]["error"] == {"code": -32603, "message": "Internal error"}
    assert client.reasons == ["uncaught"]


async def test_a_reply_that_json_cannot_say_is_an_internal_error(client: Client) -> None:
    await client.begin(call(1, nan=True))

    assert (await client.next())["error"] == {"code": -32603, "message": "Internal error"}
    assert client.reasons == ["unserializable"]


async def test_calls_in_flight_at_the_end_are_answered_as_closed(client: Client) -> None:
    async with anyio.create_task_group() as client.tasks:
        await client.begin(call(1, wait=True), call(2, wait=True))
        await client.all_blocked()
        client.send(cancel(2))
        await client.all_blocked()
        client.tasks.cancel_scope.cancel()

    received = os.read(client.pipes.reader, 1 << 16)
    assert [json.loads(line) for line in received.splitlines()] == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Connection closed"}}
    ]


async def test_answers_wait_while_the_backlog_is_full_and_none_is_lost(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "BACKLOG_BYTES", 500_000)
    await client.begin(call(1, size=1_000_000), call(2, size=10), ping(3))
    with anyio.fail_after(20):
        while len(client.pipes.reception.in_flight) != 1 or not client.pipes.outlet.pending:
            await anyio.lowlevel.checkpoint()
    assert client.pipes.outlet.pending > 500_000

    assert [(await client.next())["id"] for _ in range(3)] == [3, 1, 2]


async def test_the_backlog_takes_an_answer_until_it_is_full(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    pipes.outlet.put(b"x" * 1_000_000)
    held = pipes.outlet.pending

    monkeypatch.setattr(reception, "BACKLOG_BYTES", held + 1)
    pipes.reception.take(frames.TOO_LARGE)
    assert pipes.outlet.pending > held
    full = pipes.outlet.pending
    pipes.reception.take(frames.TOO_LARGE)
    pipes.reception.take(ping(1))
    assert pipes.outlet.pending == full
    assert len(pipes.reception.in_flight) == 1


async def test_settling_waits_for_answers_and_no_longer_than_it_may(client: Client) -> None:
    await client.begin(call(1, wait=True))
    await client.all_blocked()
    with anyio.fail_after(20):
        await client.connection.settled(0.05)
    assert not client.pipes.reception.is_settled

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.connection.settled, 1000)
        await anyio.wait_all_tasks_blocked()
        client.deeds.go_on.set()
    assert client.pipes.reception.is_settled


async def test_a_gone_reader_is_told_with_the_next_frame_and_nothing_raises(client: Client) -> None:
    await client.begin()
    client.pipes.hang_up(client.pipes.reader)
    client.send(ping(1), call(2))

    with anyio.fail_after(20):
        await client.connection.over.wait()
