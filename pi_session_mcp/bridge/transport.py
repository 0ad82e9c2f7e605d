"""The process of one external MCP server, under a keeper, and its pipes as the streams that the MCP client takes.

The SDK's own transport joins strings while a line grows, which is quadratic, and stops for good at a bad byte.
"""

from __future__ import annotations

import math
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from pi_session_mcp.bridge.frames import LineSplitter, read_message
from pi_session_mcp.keeper import kept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pi_session_mcp.keeper.kept import Kept

GRACE_S: Final = 2.0
"""After the end of its input, and again after TERM, a server may take this long to end."""
_CHUNK_BYTES: Final = 65_536
_STDIN: Final = 0

Received: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent: TypeAlias = MemoryObjectSendStream[SessionMessage]


@dataclass(frozen=True, slots=True)
class Launch:
    """What it takes to start a server; `environment` is all of it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str


class ServerProcess:
    """A started server. Whoever started it awaits `end`."""

    def __init__(self, keeper: Kept, to_server: int, from_server: int) -> None:
        self._keeper = keeper
        self._input: int | None = to_server
        self._output = from_server

    async def over(self) -> None:
        """Wait until the server has ended by itself."""
        await self._keeper.over()

    async def write(self, line: bytes) -> None:
        """Write a line; waits while the server does not read. Raises `OSError` when it is gone."""
        rest = memoryview(line)
        while rest:
            if self._input is None:
                raise BrokenPipeError
            try:
                rest = rest[os.write(self._input, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._input)

    async def read(self) -> bytes:
        """What the server has written, empty at the end."""
        await anyio.wait_readable(self._output)
        return os.read(self._output, _CHUNK_BYTES)

    async def end(self) -> None:
        """End its input, then the server: see `GRACE_S`. Nothing of its tree is left. Shield it."""
        if self._input is not None:
            anyio.notify_closing(self._input)
            os.close(self._input)
            self._input = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain)  # one that waits to write its last words could not end
            tasks.start_soon(self._hurry)
            await self._keeper.gone()
            tasks.cancel_scope.cancel()
        anyio.notify_closing(self._output)
        os.close(self._output)

    async def _drain(self) -> None:
        while await self.read():
            pass

    async def _hurry(self) -> None:
        await anyio.sleep(GRACE_S)
        self._keeper.ask()
        await anyio.sleep(GRACE_S)
        self._keeper.end()


def start(launch: Launch) -> ServerProcess:
    """Start a server. Raises `OSError`; nothing is left open then. What it writes to stderr goes nowhere."""
    their_input, our_input = os.pipe()
    our_output, their_output = os.pipe()
    try:
        keeper = kept.start(
            kept.Command(
                argv=launch.argv,
                environment=launch.environment,
                directory=launch.directory,
                grace_s=GRACE_S,
                descriptors={_STDIN: their_input},
                output=their_output,
            )
        )
    except BaseException:
        os.close(our_input)
        os.close(our_output)
        raise
    finally:
        os.close(their_input)
        os.close(their_output)
    os.set_blocking(our_input, False)
    return ServerProcess(keeper, our_input, our_output)


@asynccontextmanager
async def connected(
    launch: Launch, *, on_end: Callable[[], None], on_too_long: Callable[[], None]
) -> AsyncIterator[tuple[Received, Sent]]:
    """A server's streams, as `mcp.Client` takes them; leaving ends its process, whatever has happened.

    `on_end` is called when the server has ended by itself, `on_too_long` for each line of it that is over the limit.
    Enter and leave in one task. Raises `OSError` if it cannot be started.
    """
    process = start(launch)
    try:
        # Unbounded: the client shields what it says last, and must not wait there for a server that does not read.
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](math.inf)
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with outgoing, sent, incoming, received, anyio.create_task_group() as tasks:
            tasks.start_soon(_write, process, outgoing, incoming)
            tasks.start_soon(_read, process, incoming, on_too_long)
            tasks.start_soon(_watch, process, on_end)
            yield received, sent
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await process.end()


async def _write(
    process: ServerProcess,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    async for item in outgoing:
        try:
            await process.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        except OSError:
            incoming.close()  # it may still live: whoever waits for an answer must not wait on
            return


async def _read(
    process: ServerProcess,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    on_too_long: Callable[[], None],
) -> None:
    splitter = LineSplitter()
    seen_too_long = 0
    with incoming:
        while chunk := await process.read():
            lines = splitter.feed(chunk)
            if splitter.too_long > seen_too_long:
                seen_too_long = splitter.too_long
                on_too_long()
            for line in lines:
                if (message := read_message(line)) is not None and not await _deliver(incoming, message):
                    return


async def _deliver(incoming: MemoryObjectSendStream[SessionMessage | Exception], message: object) -> bool:
    """Whether anybody still listens."""
    try:
        await incoming.send(SessionMessage(message))  # type: ignore[arg-type]
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return False
    return True


async def _watch(process: ServerProcess, on_end: Callable[[], None]) -> None:
    await process.over()
    on_end()
