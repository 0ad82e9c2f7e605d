"""The MCP SDK's pair of streams over two descriptors, with no thread between.

Bytes are read in the SDK's own reading task and written by whoever answers, so that a call costs no hand-over. A
request that is cancelled cannot tear a frame: once encoded, a frame belongs to the outlet.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
from anyio.lowlevel import checkpoint
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from pi_session_mcp.platform.readiness import Readiness
from pi_session_mcp.server import frames
from pi_session_mcp.server.intake import InFlight
from pi_session_mcp.server.stderr import say_internal_error

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from pi_session_mcp.diagnostics import Report
    from pi_session_mcp.server.descriptors import Inlet, Outlet
    from pi_session_mcp.server.front import Given
    from pi_session_mcp.server.stderr import TransportErrors

BACKLOG_BYTES: Final = 8 * 1024 * 1024
"""Answers wait, and refusals are dropped, while so much waits for a client that does not read."""
_REPLAY_S: Final = 10.0
"""The SDK answers a handshake from memory; this is for a machine that is busy beyond reason."""
_SDK_UNCAUGHT: Final = 0
"""The code under which the SDK would send an exception's text to a client of the handshake era."""


class Connection(NamedTuple):
    """The client's side of things, with what came before the SDK was there."""

    inlet: Inlet
    outlet: Outlet
    splitter: frames.LineSplitter
    complain: TransportErrors
    given: tuple[Given, ...] = ()
    """Messages that were dealt with, each with the answer that the client got, in order."""
    waiting: tuple[frames.Line, ...] = ()
    """Lines that nobody has looked at yet."""


class Transport:
    """One connection: `reading` and `writing` are for `Server.run`.

    `over` is set at the end of input, when nobody reads our output any more, and when the answers differ. The read
    stream itself never ends, so that calls in flight can still be answered: cancel `Server.run`.
    """

    def __init__(self, connection: Connection, report: Report) -> None:
        self.over = anyio.Event()
        self.output = Output(connection.outlet, report, connection.complain, self.over)
        self.reading = ReadStream(connection, self.output)
        self.writing = WriteStream(self.output)

    @property
    def answers_differ(self) -> bool:
        """The SDK answered a request otherwise than the client had been answered: a defect of ours."""
        return self.output.answers_differ


class Output:
    """Everything that goes to the client passes here, and with it the book of requests in flight."""

    def __init__(self, outlet: Outlet, report: Report, complain: TransportErrors, over: anyio.Event) -> None:
        self.in_flight = InFlight()
        self.over = over
        self.expected: Expected | None = None
        self.answers_differ = False
        self._outlet = outlet
        self._report = report
        self._blocked = anyio.Event()
        self._changed: anyio.Event | None = None
        self._complain = complain

    async def run(self) -> None:
        """Write what could not be written at once. Runs until cancelled."""
        while True:
            await self._blocked.wait()
            while not self._outlet.pump():
                await _writable(self._outlet)
                self._tell()
            self._blocked = anyio.Event()
            self._tell()

    async def room(self) -> None:
        """Wait until another answer may be kept."""
        while self._outlet.pending >= BACKLOG_BYTES:
            await self._change()

    async def settled(self, within_s: float) -> None:
        """Wait until everything in flight is answered and written, or the time has passed."""
        with anyio.move_on_after(within_s):
            while (self.in_flight or self._outlet.pending) and not self._outlet.broken:
                await self._change()

    def put(self, frame: bytes) -> None:
        """Send a frame."""
        self._outlet.put(frame)
        if self._outlet.pending:
            self._blocked.set()
        self._tell()

    def settle(self, message_id: frames.MessageId) -> None:
        """A request was answered, or never will be."""
        self.in_flight.settle(message_id)
        self._tell()

    def refuse(self, refused: frames.Refused) -> None:
        """Tell the client what was wrong, unless it goes on sending without reading."""
        if self._outlet.pending < BACKLOG_BYTES:
            self.put(refused.answer())
        self._complain(refused.reason)

    def defect(self, reason: str) -> None:
        """Say that something of ours went wrong."""
        say_internal_error(self._report, reason)

    def differ(self) -> None:
        """Give up: the client holds an answer that is not the SDK's."""
        self.answers_differ = True
        self.over.set()

    async def _change(self) -> None:
        if self._changed is None:  # hardly ever awaited, so it is not made for every answer
            self._changed = anyio.Event()
        await self._changed.wait()

    def _tell(self) -> None:
        if self._outlet.broken:
            self.over.set()
        if self._changed is not None:
            self._changed.set()
            self._changed = None


class Expected:
    """The answer that the SDK has to give next, because the client already has it."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.came = anyio.Event()
        self._answer = answer

    def is_for(self, wire: dict[str, Any]) -> bool:
        """Whether this is an answer to the same request."""
        return "method" not in wire and wire["id"] == self._answer["id"]

    def equals(self, wire: dict[str, Any]) -> bool:
        """Whether it says the same, as JSON."""
        return frames.same(wire, self._answer)


class _Stream:
    """What both sides share. Closing does nothing: the descriptors live as long as the process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Nothing."""


class ReadStream(_Stream):
    """Yields requests and notifications, those of the hand-over first. Refuses everything else by itself."""

    def __init__(self, connection: Connection, output: Output) -> None:
        self._inlet = connection.inlet
        self._splitter = connection.splitter
        self._output = output
        self._given = deque(connection.given)
        self._lines: deque[frames.Line] = deque(connection.waiting)
        self._readiness: Readiness | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        return await self.receive()

    async def receive(self) -> SessionMessage:
        """The next message. Never returns after the end of input."""
        await self._replayed()
        if self._given:
            return self._replay(self._given.popleft())
        while True:
            while self._lines:
                if (message := self._admit(self._lines.popleft())) is not None:
                    return message
            await self._more()

    async def _replayed(self) -> None:
        """One at a time, so that the SDK sees each message in the state in which the client's answer was made."""
        expected = self._output.expected
        if expected is None:
            return
        with anyio.move_on_after(_REPLAY_S):
            await expected.came.wait()
        self._output.expected = None
        if not expected.came.is_set():
            self._output.differ()
        if self._output.answers_differ:
            await anyio.sleep_forever()

    def _replay(self, given: Given) -> SessionMessage:
        if given.answer is not None:
            self._output.expected = Expected(given.answer)
        return self._to_sdk(given.message)

    def _admit(self, line: frames.Line) -> SessionMessage | None:
        message = frames.read(line)
        if isinstance(message, frames.Request):
            message = self._output.in_flight.admit(message) or message
        if isinstance(message, frames.Refused):
            self._output.refuse(message)
            return None
        return None if isinstance(message, frames.Reply) else self._to_sdk(message)

    def _to_sdk(self, message: frames.Request | frames.Notification) -> SessionMessage:
        if isinstance(message, frames.Notification):
            return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=message.method, params=message.params))
        request_id = message.id

        async def unanswered() -> None:
            self._output.settle(request_id)

        request = JSONRPCRequest(jsonrpc="2.0", id=request_id, method=message.method, params=message.params)
        return SessionMessage(request, ServerMessageMetadata(on_request_unanswered=unanswered))

    async def _more(self) -> None:
        if self._inlet.ended:
            self._output.over.set()
            await anyio.sleep_forever()
        await self._readable()
        self._lines.extend(self._splitter.feed(self._inlet.read()))
        if self._inlet.ended:
            self._lines.extend(self._splitter.end())

    async def _readable(self) -> None:
        if self._readiness is None:
            assert self._inlet.fd is not None
            self._readiness = Readiness(self._inlet.fd)  # for as long as the descriptor: to the end of the process
        try:
            await self._readiness.wait()
        except PermissionError:  # a regular file or /dev/null: always ready, so epoll does not take it
            await checkpoint()


class WriteStream(_Stream):
    """Takes what the SDK says. Never raises, whatever it is: the next answer must get through."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message; waits while the client does not read."""
        wire = self._wire(item.message)
        expected = self._output.expected
        if expected is not None and expected.is_for(wire):
            if not expected.equals(wire):
                self._output.differ()
            expected.came.set()
            return
        await self._output.room()
        self._send(wire)

    def _send(self, wire: dict[str, Any]) -> None:
        is_answer = "method" not in wire
        try:
            frame = frames.encode(wire)
        except (TypeError, ValueError, RecursionError):
            self._output.defect("unserializable")
            frame = frames.error_frame(wire["id"], frames.INTERNAL_ERROR, "Internal error") if is_answer else b""
        if frame:
            self._output.put(frame)
        if is_answer:
            self._output.settle(wire["id"])

    def _wire(self, message: JSONRPCMessage) -> dict[str, Any]:
        match message:
            case JSONRPCResponse():
                return {"jsonrpc": "2.0", "id": message.id, "result": message.result}
            case JSONRPCError():
                return {"jsonrpc": "2.0", "id": message.id, "error": self._error(message)}
            case _:
                return message.model_dump(by_alias=True, exclude_unset=True)

    def _error(self, message: JSONRPCError) -> dict[str, Any]:
        error = message.error
        if error.code == _SDK_UNCAUGHT:
            self._output.defect("uncaught")
            return {"code": frames.INTERNAL_ERROR, "message": "Internal error"}
        return {"code": error.code, "message": error.message, **({} if error.data is None else {"data": error.data})}


async def _writable(outlet: Outlet) -> None:
    assert outlet.fd is not None
    try:
        await anyio.wait_writable(outlet.fd)
    except PermissionError:
        await checkpoint()
