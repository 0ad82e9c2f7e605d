"""The SDK's streams over real pipes: bounds, backpressure and endings that are awkward to reach from outside."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from pi_session_mcp.server import frames, transport
from pi_session_mcp.server.descriptors import Inlet, Outlet
from pi_session_mcp.server.front import Given
from pi_session_mcp.server.stderr import TransportErrors
from pi_session_mcp.server.transport import Connection, Transport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.diagnostics import Diagnostic

pytestmark = pytest.mark.anyio


class Wire:
    """A transport, and the client's ends of it."""

    def __init__(self) -> None:
        self._fds = [*os.pipe(), *os.pipe()]
        inlet, self.writer, self.reader, outlet = self._fds
        self.said: list[Diagnostic] = []
        self.inlet, self.outlet = Inlet(inlet), Outlet(outlet)

    def transport(self, given: tuple[Given, ...] = (), waiting: tuple[frames.Line, ...] = ()) -> Transport:
        complain = TransportErrors(self.said.append)
        connection = Connection(self.inlet, self.outlet, frames.LineSplitter(), complain, given, waiting)
        return Transport(connection, self.said.append)

    def drain(self) -> bytes:
        return os.read(self.reader, 1 << 20)

    def hang_up(self) -> None:
        self._fds.remove(self.writer)
        os.close(self.writer)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


def ping(message_id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % message_id


def answer(message_id: int | str, **result: Any) -> SessionMessage:
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=message_id, result=result))


async def test_messages_come_in_the_order_of_their_arrival_those_that_waited_first(wire: Wire) -> None:
    os.write(wire.writer, ping(3))
    reading = wire.transport(waiting=(ping(1), None, ping(2))).reading

    ids = [(await reading.receive()).message.id for _ in range(3)]  # type: ignore[union-attr]

    assert ids == [1, 2, 3]
    assert b"too large" in wire.drain()


async def test_the_end_of_input_is_told_and_the_stream_stays_open(wire: Wire) -> None:
    made = wire.transport()
    wire.hang_up()
    with anyio.move_on_after(0.2) as waited:
        await made.reading.receive()

    assert waited.cancelled_caught
    assert made.over.is_set()


async def test_a_file_is_read_to_its_end(wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(ping(1) + ping(2).rstrip())
    wire.inlet = Inlet(os.open(path, os.O_RDONLY))
    made = wire.transport()

    assert (await made.reading.receive()).message.id == 1  # type: ignore[union-attr]
    assert (await made.reading.receive()).message.id == 2  # type: ignore[union-attr]
    assert wire.inlet.fd is not None
    os.close(wire.inlet.fd)


async def test_an_answer_waits_while_the_backlog_is_full_and_not_before(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = wire.transport()
    await made.writing.send(answer(1, text="x" * 1_000_000))
    monkeypatch.setattr(transport, "BACKLOG_BYTES", wire.outlet.pending + 1)
    await made.writing.send(answer(2))
    assert wire.outlet.pending >= transport.BACKLOG_BYTES

    with anyio.move_on_after(0.1) as waited:
        await made.writing.send(answer(3))
    assert waited.cancelled_caught

    received = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.output.run)
        tasks.start_soon(made.writing.send, answer(4))
        while received.count(b"\n") < 3:
            await anyio.wait_readable(wire.reader)
            received += wire.drain()
        tasks.cancel_scope.cancel()
    assert [json.loads(line)["id"] for line in received.splitlines()] == [1, 2, 4]


async def test_refusals_are_dropped_while_the_backlog_is_full_and_not_before(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = wire.transport()
    made.output.put(b"x" * 1_000_000)
    held = wire.outlet.pending

    monkeypatch.setattr(transport, "BACKLOG_BYTES", held + 1)
    made.output.refuse(frames.TOO_LARGE)
    assert wire.outlet.pending > held
    full = wire.outlet.pending
    made.output.refuse(frames.TOO_LARGE)
    assert wire.outlet.pending == full


async def test_settling_waits_for_answers_and_no_longer_than_it_may(wire: Wire) -> None:
    os.write(wire.writer, ping(1))
    made = wire.transport()
    await made.reading.receive()
    with anyio.fail_after(10):
        await made.output.settled(0.05)
    assert made.output.in_flight

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.output.settled, 1000)
        await anyio.wait_all_tasks_blocked()
        await made.writing.send(answer(1))
    assert not made.output.in_flight


async def test_a_request_that_will_never_be_answered_gives_its_id_free(wire: Wire) -> None:
    os.write(wire.writer, ping(1) + ping(1) + ping(1))
    made = wire.transport()
    first = await made.reading.receive()
    metadata: Any = first.metadata
    await metadata.on_request_unanswered()

    await made.reading.receive()
    with anyio.move_on_after(0.05):
        await made.reading.receive()
    assert json.loads(wire.drain())["error"]["message"] == "Request id is already in flight"


async def test_a_gone_reader_is_told_with_the_next_frame_and_nothing_raises(wire: Wire) -> None:
    wire._fds.remove(wire.reader)
    os.close(wire.reader)
    made = wire.transport()
    await made.writing.send(answer(1))
    await made.writing.send(answer(2))

    assert made.over.is_set()


async def test_a_notification_that_cannot_be_sent_is_dropped_and_said(wire: Wire) -> None:
    made = wire.transport()
    params = {"progress": float("nan")}
    await made.writing.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x", params=params)))
    await made.writing.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="roots/list")))

    assert json.loads(wire.drain()) == {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
    assert [each.reason for each in wire.said] == ["unserializable"]


GIVEN = Given(frames.Request(1, "ping", None), {"jsonrpc": "2.0", "id": 1, "result": {}})


async def test_a_given_answer_is_compared_and_not_sent_again(wire: Wire) -> None:
    made = wire.transport(given=(GIVEN, GIVEN._replace(answer=None)), waiting=(ping(1),))
    await made.reading.receive()
    await made.writing.send(answer(1))
    await made.reading.receive()
    await made.reading.receive()
    await made.writing.send(answer(1, now="sent"))

    assert json.loads(wire.drain()) == {"jsonrpc": "2.0", "id": 1, "result": {"now": "sent"}}
    assert not made.answers_differ


@pytest.mark.parametrize("other", [answer(1, more=1), answer(1, result=None)])
async def test_another_answer_is_found_out_and_neither_sent_nor_followed(wire: Wire, other: SessionMessage) -> None:
    made = wire.transport(given=(GIVEN,), waiting=(ping(2),))
    await made.reading.receive()
    await made.writing.send(other)
    with anyio.move_on_after(0.05) as waited:
        await made.reading.receive()

    assert waited.cancelled_caught
    assert made.answers_differ
    assert made.over.is_set()
    assert wire.outlet.pending == 0


async def test_a_given_answer_that_the_sdk_never_gives_is_a_difference(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_REPLAY_S", 0.01)
    made = wire.transport(given=(GIVEN,))
    await made.reading.receive()
    with anyio.move_on_after(0.1):
        await made.reading.receive()

    assert made.answers_differ


async def test_an_answer_to_something_else_is_sent_while_a_given_one_is_awaited(wire: Wire) -> None:
    made = wire.transport(given=(GIVEN,))
    await made.reading.receive()
    await made.writing.send(answer("1", other=True))

    assert json.loads(wire.drain())["id"] == "1"
    assert not made.answers_differ
