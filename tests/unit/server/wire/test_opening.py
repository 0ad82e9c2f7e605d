"""The plain loop before the hand-over: what it answers, what it keeps, and when it ends."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.server.process.descriptors import Inlet, Outlet
from pi_session_mcp.server.process.lifecycle import Stop
from pi_session_mcp.server.process.stderr import TransportErrors
from pi_session_mcp.server.wire import opening as opening_module
from pi_session_mcp.server.wire.frames import LineSplitter, Notification
from pi_session_mcp.server.wire.opening import Loading, Opening
from pi_session_mcp.server.wire.protocol import Protocol
from pi_session_mcp.server.wire.reception import Reception
from tests.support.piped import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_session_mcp.diagnostics import Diagnostic
    from pi_session_mcp.server.wire.protocol import Call

PATIENCE_S = 30
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pi_session_list"}}\n'
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'


class Client:
    """The other side of an opening, which runs in this thread when `attend` is called."""

    def __init__(self) -> None:
        inlet, self.writer = os.pipe()
        self.reader, outlet = os.pipe()
        self.said: list[Diagnostic] = []
        self.inlet = Inlet(inlet)
        self.splitter = LineSplitter()
        self.calls: list[Call] = []
        self.outlet = Outlet(outlet)
        self.reception = Reception(self.outlet, Protocol(IDENTITY), TransportErrors(self.said.append), self.said.append)
        self.opening = Opening(self.inlet, self.outlet, self.splitter, self.reception, self.calls)
        self.stop = Stop(PATIENCE_S)
        self._open = {inlet, self.writer, self.reader, outlet}

    def send(self, data: bytes) -> None:
        os.write(self.writer, data)

    def shake_hands(self) -> None:
        """What makes calls possible, without a trace in the pipes."""
        self.reception.protocol.hear(Notification("notifications/initialized", None))

    def close(self, fd: int) -> None:
        self._open.remove(fd)
        os.close(fd)

    def close_all(self) -> None:
        for fd in tuple(self._open):
            self.close(fd)

    def answers(self) -> list[Any]:
        return [json.loads(line) for line in os.read(self.reader, 1 << 20).splitlines()]

    def leave_after(self, request: int) -> None:
        """Take answers until that of the request is there, and say nothing more."""
        while request not in [answer["id"] for answer in self.answers()]:
            pass
        self.close(self.writer)

    def attend(self, judge: Callable[[], Any] = dict, load: Callable[[Any], Any] = lambda _judged: "loaded") -> Any:
        loading: Loading[Any, Any] = Loading(judge, load)
        self.opening.attend(loading, self.stop)
        return loading


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    made.shake_hands()
    yield made
    made.close_all()


def test_it_ends_when_everything_is_loaded(client: Client) -> None:
    client.send(PING % 1 + CALL % 2)
    loading = client.attend(judge=lambda: 7, load=lambda judged: f"with {judged}")

    assert loading.loaded == "with 7"
    assert [answer["id"] for answer in client.answers()] == [1]
    assert [call.id for call in client.calls] == [2]


def test_nothing_is_loaded_for_a_client_that_calls_no_tool(client: Client) -> None:
    def judge() -> str:
        client.send(PING % 2)
        return "judged"

    client.send(PING % 1)
    leaving = threading.Thread(target=client.leave_after, args=(2,))
    leaving.start()
    loading = client.attend(judge=judge, load=pytest.fail)
    leaving.join(PATIENCE_S)

    assert loading.judged
    assert loading.loaded is loading.failure is None


def test_a_call_after_any_time_begins_the_loading(client: Client) -> None:
    def judge() -> str:
        asking.start()
        return "judged"

    asking = threading.Thread(target=lambda: client.send(CALL % 1))
    loading = client.attend(judge=judge)
    asking.join(PATIENCE_S)

    assert loading.loaded == "loaded"


def test_calls_wait_and_everything_else_is_answered_at_once(client: Client) -> None:
    client.send(PING % 1 + CALL % 2 + PING % 3 + b"no json\n" + CALL % 4 + CANCEL % 2)
    client.attend(load=after_answers(client, 3))

    assert [call.id for call in client.calls] == [4]
    assert len(client.reception.in_flight) == 1
    assert list(client.splitter.feed(b'"}\n')) == [b'{"half"}']


def after_answers(client: Client, count: int) -> Callable[[Any], str]:
    """A load that takes until so many lines were answered, and everything before them was read."""

    def load(_judged: Any) -> str:
        received = b""
        while received.count(b"\n") < count:
            received += os.read(client.reader, 1 << 16)
        client.send(PING % 9 + b'{"half')
        while b'"id":9' not in received:
            received += os.read(client.reader, 1 << 16)
        return "loaded"

    return load


def test_bad_lines_are_answered_and_said(client: Client) -> None:
    client.send(b"no json\n[]\n" + PING % 1 + CALL % 2)
    client.attend()

    assert [answer.get("error", {}).get("code") for answer in client.answers()] == [-32700, -32600, None]
    assert [each.reason for each in client.said] == ["parse"]


def test_a_failure_ends_it_at_once_and_is_kept(client: Client) -> None:
    def refuse() -> None:
        raise LookupError

    loading = client.attend(judge=refuse, load=pytest.fail)

    assert isinstance(loading.failure, LookupError)
    assert not loading.judged


def test_input_that_ended_with_nothing_waiting_needs_only_the_judgement(client: Client) -> None:
    client.send(PING % 1)
    client.close(client.writer)
    never = threading.Event()
    loading = client.attend(load=lambda _judged: never.wait(PATIENCE_S))

    assert loading.judged
    assert loading.loaded is None
    never.set()


def test_input_that_ended_with_something_waiting_waits_for_everything(client: Client) -> None:
    client.send(CALL % 1)
    client.close(client.writer)
    loading = client.attend()

    assert loading.loaded == "loaded"
    assert len(client.calls) == 1


def test_a_reader_that_is_gone_ends_it(client: Client) -> None:
    client.close(client.reader)
    client.send(PING % 1)
    never = threading.Event()
    loading = client.attend(judge=lambda: never.wait(PATIENCE_S))

    assert loading.loaded is None
    never.set()


def test_a_request_to_stop_ends_it(client: Client) -> None:
    never = threading.Event()

    def judge() -> None:
        client.stop.request(ExitStatus.TERMINATED)
        never.wait(PATIENCE_S)

    client.attend(judge=judge)

    assert client.stop.status == 143
    never.set()


def test_the_judgement_begins_by_itself_when_nobody_speaks(client: Client) -> None:
    loading = client.attend(judge=lambda: client.close(client.writer))

    assert loading.judged
    assert loading.loaded is None


def test_no_more_is_kept_than_the_bound_and_nothing_is_lost(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening_module, "_MAX_WAITING_BYTES", 1 << 16)
    padded = CALL.replace(b'"name"', b'"_meta":{"padding":"' + b"x" * 1000 + b'"},"name"')
    lines = [padded % number for number in range(1000)]
    sender = threading.Thread(target=send_all, args=(client, b"".join(lines)))
    sender.start()
    full = threading.Event()
    may_read = client.opening._may_read

    def note() -> bool:
        if not may_read():
            full.set()
        return may_read()

    monkeypatch.setattr(client.opening, "_may_read", note)
    client.attend(load=lambda _judged: full.wait(PATIENCE_S))
    assert full.is_set()

    kept = len(client.calls)
    assert sum(map(len, lines[:kept])) <= (1 << 16) + 65536
    while kept < len(lines):
        kept += sum(1 for _ in client.splitter.feed(client.inlet.read()))
    sender.join(PATIENCE_S)
    assert [call.id for call in client.calls] == list(range(len(client.calls)))
    assert kept == len(lines)


def send_all(client: Client, data: bytes) -> None:
    while data:
        data = data[os.write(client.writer, data) :]


def test_a_client_that_does_not_read_is_not_read_either(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening_module, "_MAX_PENDING_BYTES", 1000)
    sender = threading.Thread(target=send_all, args=(client, b"x\n" * 20_000))
    sender.start()

    def judge() -> None:
        while client.opening._outlet.pending < 1000:
            threading.Event().wait(0.001)
        client.stop.request(ExitStatus.OK)

    client.attend(judge=judge)

    assert client.opening._outlet.pending < 1000 + 65536 // 2 * 76
    received = b""
    while client.opening._outlet.pending:
        received += os.read(client.reader, 65536)
        client.opening._outlet.pump()
    while sender.is_alive():
        client.inlet.read()
    assert set(received.splitlines()) == {
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    }
