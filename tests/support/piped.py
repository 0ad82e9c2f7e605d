"""Tools behind the product's own connection, over real pipes, with the MCP SDK's client at the other end."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from pi_session_mcp import __version__
from pi_session_mcp.server.catalog import INSTRUCTIONS, SERVER_NAME, TOOLS
from pi_session_mcp.server.process.descriptors import Inlet, Outlet
from pi_session_mcp.server.process.stderr import TransportErrors
from pi_session_mcp.server.wire.connection import Connection
from pi_session_mcp.server.wire.frames import LineSplitter
from pi_session_mcp.server.wire.protocol import Identity, Protocol
from pi_session_mcp.server.wire.reception import Reception

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from pi_session_mcp.diagnostics import Diagnostic
    from pi_session_mcp.server.wire.connection import Tools
    from pi_session_mcp.server.wire.protocol import Call

IDENTITY: Final = Identity(SERVER_NAME, __version__, INSTRUCTIONS, TOOLS)


class Pipes:
    """The server's end of two pipes, as a connection, and the client's end of them. Close it."""

    def __init__(self) -> None:
        self._fds = [*os.pipe(), *os.pipe()]
        inlet, self.writer, self.reader, outlet = self._fds
        self.said: list[Diagnostic] = []
        self.inlet, self.outlet = Inlet(inlet), Outlet(outlet)
        complain = TransportErrors(self.said.append)
        self.reception = Reception(self.outlet, Protocol(IDENTITY), complain, self.said.append)

    def connection(self, waiting: Iterable[Call] = ()) -> Connection:
        """A connection over them; make it inside of an event loop."""
        return Connection(self.inlet, self.outlet, LineSplitter(), self.reception, waiting)

    def hang_up(self, end: int) -> None:
        """Close one of the client's ends."""
        self._fds.remove(end)
        os.close(end)

    def close(self) -> None:
        """Close what is open."""
        for fd in self._fds:
            os.close(fd)


@asynccontextmanager
async def client_streams(tools: Tools) -> AsyncIterator[Any]:
    """The pair of streams that the SDK's client takes, joined to `tools`."""
    pipes = Pipes()
    connection = pipes.connection()
    to_client, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with to_client, from_client, reading, writing, anyio.create_task_group() as tasks:
            tasks.start_soon(connection.write)
            tasks.start_soon(connection.serve, tools)
            tasks.start_soon(_deliver, pipes.reader, to_client)
            tasks.start_soon(_send, from_client, pipes.writer)
            yield reading, writing
            tasks.cancel_scope.cancel()
    finally:
        pipes.close()
    assert pipes.said == [], pipes.said


async def _deliver(reader: int, to_client: Any) -> None:
    received = b""
    while True:
        await anyio.wait_readable(reader)
        *lines, received = (received + os.read(reader, 1 << 20)).split(b"\n")
        for line in lines:
            await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))


async def _send(from_client: Any, writer: int) -> None:
    async for item in from_client:
        await write_all(writer, item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


async def write_all(writer: int, data: bytes) -> None:
    """Write everything to a pipe, and wait while it is full."""
    os.set_blocking(writer, False)
    while data:
        await anyio.wait_writable(writer)
        data = data[os.write(writer, data) :]
