"""Requests, answers and events on one host's channel.

Nothing else uses the channel. A request is always sent whole, even if its caller was cancelled, since half a frame
would break the protocol. A frame of the host that breaks it ends the host.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio

from pi_session_mcp.errors import HostGone
from pi_session_mcp.host.protocol import (
    HELLO_ID,
    MAX_FRAME_BYTES,
    Call,
    Cancel,
    Empty,
    Failed,
    HelloResult,
    Ping,
    Succeeded,
    decode_host_frame,
    encode_done,
    encode_request,
)
from pi_session_mcp.platform.allowance import Allowance
from pi_session_mcp.platform.lines import LineSplitter
from pi_session_mcp.platform.readiness import Readiness

if TYPE_CHECKING:
    import socket

    from pydantic import BaseModel

    from pi_session_mcp.host.protocol import Done, HostFrame, PiFault, Request, SessionFrame

_CHUNK_BYTES: Final = 65_536
"""How much is read and handled before other tasks run."""
FRAMES_A_SECOND: Final = 1_000
"""Events and calls of all sessions of a host together. A busy session sends a few in a second."""
MAX_FRAMES: Final = 10_000
"""Of those, what a host that was silent for long may send at once."""
MAX_UNREAD_BYTES: Final = 32 * 1024 * 1024
"""How much of the answers to its calls a host may leave unread. What we ask it is bounded by the MCP client's calls."""
MAX_ABANDONED: Final = 1024
"""How many answers a host may owe whose callers have left."""

ResultT = TypeVar("ResultT", bound="BaseModel")


class HostFailed(Exception):  # noqa: N818 - an expected answer
    """The host answered that a request failed: `code` is its word, `reason` what is wrong with Pi's files."""

    def __init__(self, code: str, reason: PiFault | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason


class ProtocolBroken(Exception):  # noqa: N818 - ends the host
    """The host sent something that is no frame, or a frame that cannot come now."""


class HostOverran(Exception):  # noqa: N818 - ends the host
    """The host sent more without being asked than any session has reason to."""


class EventSink(Protocol):
    """Where the events and calls of one placed session go. Must not block or raise."""

    def host_event(self, event: SessionFrame) -> None:
        """An event or a call of this session."""

    def host_ended(self) -> None:
        """The host has ended. Nothing is called after this."""


class _Pending:
    __slots__ = ("answer", "arrived")

    def __init__(self) -> None:
        self.arrived = asyncio.Event()  # one is made for each request, and anyio's takes ten times as long to make
        self.answer: Succeeded | Failed | None = None


class HostClient:
    """The server's side of one channel. `receive` and `transmit` run as tasks of the host's owner.

    The greeting, request `HELLO_ID`, was sent when the host was started.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._last_id = HELLO_ID
        self._pending = {HELLO_ID: _Pending()}
        self._abandoned: set[int] = set()
        self._sinks: dict[int, EventSink] = {}
        self._last_session = 0
        self._last_call = 0
        self._allowance = Allowance(MAX_FRAMES, FRAMES_A_SECOND)
        self._outgoing = bytearray()
        self._answers = bytearray()
        """Answers to calls of the host, sent before `_outgoing`. Only these can grow by what a host does."""
        self._blocked = anyio.Event()
        self._closed = False
        self.overdue = anyio.Event()
        """Set when a request has waited for half of its time. The host's owner then pings."""
        self.broken = anyio.Event()
        """Set when the content of an answer broke the protocol. The host's owner then ends it."""
        self.overran = anyio.Event()
        """Set when the host left too much unread or unanswered. The host's owner then ends it."""

    # --- placement ---------------------------------------------------------------------------------------------------

    def place(self, sink: EventSink) -> int:
        """Give a new session its key, which this host has never had; its events go to `sink`."""
        if self._closed:
            raise HostGone
        self._last_session += 1
        self._sinks[self._last_session] = sink
        return self._last_session

    def remove(self, session: int) -> None:
        """Forget a session. What the host still says of it is dropped."""
        self._sinks.pop(session, None)

    # --- requests ----------------------------------------------------------------------------------------------------

    async def request(
        self,
        request: Request,
        result: type[ResultT],
        *,
        within_s: float | None = None,
        watch_after_s: float | None = None,
    ) -> ResultT:
        """Send a request and return its answer.

        The host is pinged after `watch_after_s` without an answer. A caller that is cancelled leaves the request in the
        host and drops the answer. Raises `TimeoutError` after `within_s`, `HostFailed` and `HostGone`.
        """
        return await self._answer_to(self._post(request), result, within_s, watch_after_s)

    async def greeted(self, *, within_s: float) -> HelloResult:
        """The answer to the greeting. Call it once. Raises what `request` raises."""
        return await self._answer_to(HELLO_ID, HelloResult, within_s)

    async def _answer_to(
        self, number: int, result: type[ResultT], within_s: float | None, watch_after_s: float | None = None
    ) -> ResultT:
        pending = self._pending[number]
        try:
            with anyio.fail_after(within_s):
                await self._await_answer(pending, watch_after_s)
        finally:
            del self._pending[number]
            if pending.answer is None and not self._closed:
                self._abandon(number)
        match pending.answer:
            case None:
                raise HostGone
            case Failed(code=code, reason=reason):
                raise HostFailed(code, reason)
            case Succeeded(result=values):
                return self._validated(result, values)

    def _abandon(self, number: int) -> None:
        self._abandoned.add(number)
        if len(self._abandoned) > MAX_ABANDONED:
            self.overran.set()

    def _validated(self, result: type[ResultT], values: dict[str, object]) -> ResultT:
        try:
            return result.model_validate(values)
        except ValueError as error:
            self.broken.set()
            raise HostGone from error

    async def _await_answer(self, pending: _Pending, watch_after_s: float | None) -> None:
        if watch_after_s is None:
            await pending.arrived.wait()
            return
        watch = asyncio.get_running_loop().call_later(watch_after_s, self.overdue.set)
        try:
            await pending.arrived.wait()
        finally:
            watch.cancel()

    async def ping(self, *, within_s: float) -> bool:
        """Whether the host answers. Raises `HostGone`."""
        try:
            await self.request(Ping(), Empty, within_s=within_s)
        except TimeoutError:
            return False
        return True

    def end_call(self, done: Done) -> None:
        """Tell the host how a call of its has ended. Does nothing if the host is gone."""
        if not self._closed:
            self._answers += encode_done(done)
            self._push()
            if len(self._answers) > MAX_UNREAD_BYTES:
                self.overran.set()

    def _post(self, request: Request) -> int:
        if self._closed:
            raise HostGone
        self._last_id += 1
        self._pending[self._last_id] = _Pending()
        self._outgoing += encode_request(self._last_id, request)
        self._push()
        return self._last_id

    def _push(self) -> None:
        try:
            while self._outgoing or self._answers:
                if not self._outgoing:
                    self._outgoing, self._answers = self._answers, self._outgoing
                del self._outgoing[: self._channel.send(self._outgoing)]
        except BlockingIOError:
            self._blocked.set()
        except OSError:
            self._outgoing.clear()  # the host is gone, and `receive` sees that too
            self._answers.clear()

    # --- tasks -------------------------------------------------------------------------------------------------------

    async def transmit(self) -> None:
        """Send what the host could not take at once."""
        while True:
            await self._blocked.wait()
            self._blocked = anyio.Event()
            await anyio.wait_writable(self._channel)
            self._push()

    async def receive(self) -> None:
        """Take frames until the channel ends. Raises `ProtocolBroken` and `HostOverran`."""
        lines = LineSplitter(MAX_FRAME_BYTES)
        with Readiness(self._channel.fileno()) as readiness:
            while chunk := await self._read(readiness):
                self._allowance.grow(asyncio.get_running_loop().time())
                for line in lines.feed(chunk):
                    self._take(line)
                if lines.too_long:
                    raise ProtocolBroken

    async def _read(self, readiness: Readiness) -> bytes:
        await readiness.wait()
        try:
            return self._channel.recv(_CHUNK_BYTES)
        except ConnectionError:
            return b""

    def _take(self, line: bytes) -> None:
        try:
            frame = decode_host_frame(line)
        except ValueError as error:
            raise ProtocolBroken from error
        self._deliver(frame)

    def _deliver(self, frame: HostFrame) -> None:
        match frame:
            case Succeeded() | Failed():
                self._answer(frame)
            case _:
                if not self._allowance.take():
                    raise HostOverran
                self._number(frame)
                self._route(frame)

    def _answer(self, frame: Succeeded | Failed) -> None:
        if frame.re in self._abandoned:
            self._abandoned.discard(frame.re)
            return
        pending = self._pending.get(frame.re)
        if pending is None or pending.answer is not None:
            raise ProtocolBroken
        pending.answer = frame
        pending.arrived.set()

    def _number(self, frame: SessionFrame) -> None:
        """Check that the numbers of calls rise. Raises `ProtocolBroken`."""
        match frame:
            case Call(call=number):
                if number <= self._last_call:
                    raise ProtocolBroken
                self._last_call = number
            case Cancel(cancel=number):
                if not 0 < number <= self._last_call:
                    raise ProtocolBroken
            case _:
                pass

    def _route(self, event: SessionFrame) -> None:
        if not 0 < event.session <= self._last_session:
            raise ProtocolBroken
        if (sink := self._sinks.get(event.session)) is not None:
            sink.host_event(event)

    # --- end ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the channel. Callers that wait get `HostGone`, and every session is told that the host has ended."""
        if self._closed:
            return
        self._closed = True
        anyio.notify_closing(self._channel)
        self._channel.close()
        for pending in self._pending.values():
            pending.arrived.set()
        sinks = list(self._sinks.values())
        self._sinks.clear()
        for sink in sinks:
            sink.host_ended()


__all__ = ["EventSink", "HostClient", "HostFailed", "HostGone", "HostOverran", "ProtocolBroken"]
