"""Joins the process of one external MCP server to the streams that the SDK's client takes.

The SDK's own transport takes quadratic time for a long line and stops for good at a bad byte, and its client does not
bound what a server makes it do. So the client gets answers only. Requests of a server are answered here, and its
notifications are dropped here, both within bounds.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import METHOD_NOT_FOUND, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse

from pi_session_mcp.bridge.allowance import BURST_BYTES, BYTES_EACH_SECOND, DROPPED_COUNT_ONCE_IN, weight
from pi_session_mcp.bridge.frames import MAX_FRAME_BYTES, read_messages
from pi_session_mcp.bridge.outbox import Outbox
from pi_session_mcp.bridge.process import running_server
from pi_session_mcp.platform.allowance import Allowance
from pi_session_mcp.platform.lines import LineSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp_types import JSONRPCMessage

    from pi_session_mcp.bridge.process import Launch
    from pi_session_mcp.keeper.child import Child

Received: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
_PING: Final = "ping"


class Watcher(Protocol):
    """Is told what happens to a server. Must not block or raise."""

    def server_ended(self) -> None:
        """The server has ended by itself."""

    def line_too_long(self) -> None:
        """The server has begun a line that is over the limit. It may be any answer that is waited for."""

    def answer_unknown(self) -> None:
        """The server has answered a request that was never made. The answer may be meant for any request that waits."""

    def overran(self) -> None:
        """The server sends more than is read, or does not read the answers that it asked for. It is read no more."""


@asynccontextmanager
async def connected(launch: Launch, watcher: Watcher) -> AsyncIterator[tuple[Received, Outbox]]:
    """A started server's answers, and where to write to it, as an MCP client takes them. Leaving ends the server.

    Enter and leave it in one task. Raises `OSError` if it cannot be started.
    """
    async with running_server(launch) as process:
        outbox = Outbox(watcher.overran)
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with incoming, received, anyio.create_task_group() as tasks:
            tasks.start_soon(_write, process, outbox, incoming.close)
            tasks.start_soon(_Intake(process, outbox, incoming, watcher).run)
            tasks.start_soon(_watch, process, watcher)
            yield received, outbox
            tasks.cancel_scope.cancel()


async def _write(process: Child, outbox: Outbox, stop_reading: Callable[[], None]) -> None:
    while True:
        line = await outbox.take()
        try:
            await process.write(line)
        except OSError:
            outbox.close()
            stop_reading()  # the server may still live, and a call must not wait for its answer
            return


async def _watch(process: Child, watcher: Watcher) -> None:
    await process.over()
    watcher.server_ended()


class _Intake:
    """Reads what a server writes and passes on the answers that are waited for, each once."""

    def __init__(
        self,
        process: Child,
        outbox: Outbox,
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
        watcher: Watcher,
    ) -> None:
        self._process = process
        self._outbox = outbox
        self._incoming = incoming
        self._watcher = watcher
        self._splitter = LineSplitter(MAX_FRAME_BYTES)
        self._allowance = Allowance(BURST_BYTES, BYTES_EACH_SECOND)

    async def run(self) -> None:
        """Read until the server closes its output, the client has left, or the server was given up."""
        with self._incoming:
            try:
                while chunk := await self._process.read():
                    await self._take(chunk)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    async def _take(self, chunk: bytes) -> None:
        too_long, dropped = self._splitter.too_long, self._splitter.dropped
        lines = self._splitter.feed(chunk)
        if self._splitter.too_long > too_long:
            self._watcher.line_too_long()
        self._spend((self._splitter.dropped - dropped) // DROPPED_COUNT_ONCE_IN)
        for line in lines:
            answers = [one for message in read_messages(line) if (one := self._answer(message)) is not None]
            if not answers:
                self._spend(weight(len(line)))
            for answer in answers:
                await self._incoming.send(SessionMessage(answer))

    def _spend(self, size: int) -> None:
        self._allowance.grow(anyio.current_time())
        if not self._allowance.take(size):
            self._outbox.close()
            self._watcher.overran()
            raise anyio.BrokenResourceError

    def _answer(self, message: JSONRPCMessage) -> JSONRPCMessage | None:
        """The message if it is an answer that is waited for, with the id that its request had."""
        match message:
            case JSONRPCRequest(id=number, method=method):
                self._outbox.put(_reply(number, method))
            case JSONRPCResponse(id=number) | JSONRPCError(id=number):
                if (asked := self._outbox.settle(number)) is not None:
                    return message.model_copy(update={"id": asked})
                if not self._outbox.has_asked(number) and not (number is None and self._outbox.forgives()):
                    self._watcher.answer_unknown()
            case _:
                pass
        return None


def _reply(number: int | str, method: str) -> JSONRPCMessage:
    """The answer to a request of a server: we are alive, and offer no sampling, no roots, no questions to a person."""
    if method == _PING:
        return JSONRPCResponse(jsonrpc="2.0", id=number, result={})
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=METHOD_NOT_FOUND, message="Method not found"))
