"""The process of one external MCP server, under a keeper, and its pipes as the streams that the MCP client takes.

The SDK's own transport joins strings while a line grows, which is quadratic, and stops for good at a bad byte. Nor does
its client bound what a server makes it do. So the client gets answers, and nothing else: what a server asks is answered
here, and what it tells is dropped here, both within bounds.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import METHOD_NOT_FOUND, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse

from pi_session_mcp.bridge.allowance import DROPPED_COUNT_ONCE_IN, Allowance, weight
from pi_session_mcp.bridge.frames import LineSplitter, read_messages
from pi_session_mcp.bridge.outbox import Outbox
from pi_session_mcp.bridge.process import running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp_types import JSONRPCMessage

    from pi_session_mcp.bridge.process import Launch
    from pi_session_mcp.keeper.child import Child

Received: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
_PING: Final = "ping"


class Watcher(Protocol):
    """Who is told what happens to a server. Must not block or raise."""

    def server_ended(self) -> None:
        """It has ended by itself."""

    def line_too_long(self) -> None:
        """It has begun a line that is over the limit, which may be any answer that is waited for."""

    def answer_unknown(self) -> None:
        """It has answered what it was never asked; that may be meant for any request that waits."""

    def overran(self) -> None:
        """It says more than is read, or does not read what it makes us say. Nothing more will be taken from it."""


@asynccontextmanager
async def connected(launch: Launch, watcher: Watcher) -> AsyncIterator[tuple[Received, Outbox]]:
    """A server's answers, and where to write to it, as an MCP client takes them; leaving ends its process for certain.

    Enter and leave in one task. Raises `OSError` if it cannot be started.
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
            stop_reading()  # it may still live: whoever waits for an answer must not wait on
            return


async def _watch(process: Child, watcher: Watcher) -> None:
    await process.over()
    watcher.server_ended()


class _Intake:
    """Reads what a server writes and hands on the answers that are waited for, each once."""

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
        self._splitter = LineSplitter()
        self._allowance = Allowance(anyio.current_time())

    async def run(self) -> None:
        """Read until the server closes its output, or until nobody listens or the server was given up."""
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
        if not self._allowance.take(size, anyio.current_time()):
            self._outbox.close()
            self._watcher.overran()
            raise anyio.BrokenResourceError

    def _answer(self, message: JSONRPCMessage) -> JSONRPCMessage | None:
        """The message if it is an answer that is waited for, under the number that it was asked with."""
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
    """We are alive, and offer nothing: no sampling, no roots, no questions to a person."""
    if method == _PING:
        return JSONRPCResponse(jsonrpc="2.0", id=number, result={})
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=METHOD_NOT_FOUND, message="Method not found"))
