"""The server as a child of the demonstration, started as a client starts it, and seen from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import mcp_types
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.shared.message import SessionMessage

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.platform import processes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import ByteReceiveStream, ByteSendStream, Process
    from mcp.client._transport import TransportStreams

    from pi_session_mcp.demo.world import DemoWorld

_LINE_LIMIT_BYTES: Final = 8 * 1024 * 1024
_SAID_LIMIT: Final = 8

_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


@dataclass(frozen=True, slots=True)
class Family:
    """The server and all of its descendants at one moment, each by its id and its start."""

    members: frozenset[tuple[int, str]]

    def alive(self) -> int:
        """How many of these processes run now. A zombie does not count. Raises `OSError` or `ValueError`."""
        return len(self.members & {(row.pid, row.start) for row in processes.scan() if not row.ended})


class RunningServer:
    """A started server. Its owner is `running_server`."""

    def __init__(self, process: Process, end_within_s: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._end_within_s = end_within_s
        self._stdin: ByteSendStream = process.stdin
        self._stdout: ByteReceiveStream = process.stdout
        self._stderr: ByteReceiveStream = process.stderr
        self._to_client, self._from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._to_server, self._from_client = anyio.create_memory_object_stream[SessionMessage](0)
        self._silent = anyio.Event()
        self.said: list[str] = []
        """The codes of its latest diagnostics; complete once `end` has returned."""

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[TransportStreams]:
        """The two streams that an MCP client needs. Leaving this block does not end the server."""
        yield self._from_server, self._to_server

    def family(self) -> Family:
        """The server's process tree now. Raises `OSError` or `ValueError` when the process table cannot be read."""
        return Family(frozenset((row.pid, row.start) for row in processes.family(self._process.pid)))

    async def end(self) -> int:
        """Close the server's input, as a client does, and return its exit status. A server that does not end is killed.

        Doing so again changes nothing.
        """
        with anyio.CancelScope(shield=True):
            self._from_server.close()
            with suppress(*_GONE):
                await self._stdin.aclose()
            if not await self._wait(self._end_within_s):
                # Its tree ends with it: keepers notice that their owner is gone.
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                await self._wait(DEADLINES.demo_reap_s)
            with anyio.move_on_after(DEADLINES.demo_reap_s):
                await self._silent.wait()
        return -signal.SIGKILL if self._process.returncode is None else self._process.returncode

    async def _wait(self, seconds: float) -> bool:
        """Whether the server ended in time."""
        with anyio.move_on_after(seconds):
            await self._process.wait()
        return self._process.returncode is not None

    def hang_up(self) -> None:
        """Close what joins us and the client."""
        for stream in (self._to_client, self._from_server, self._to_server, self._from_client):
            stream.close()

    async def deliver(self) -> None:
        """Pass the server's messages to the client. Read on after the client has left, or the server would block."""
        lines = BufferedByteReceiveStream(self._stdout)
        async with _drained(self._stdout), self._to_client:
            while True:
                await self._to_client.send(_message(await lines.receive_until(b"\n", _LINE_LIMIT_BYTES)))

    async def forward(self) -> None:
        """Hand the client's messages to the server."""
        with suppress(*_GONE):
            async with self._from_client:
                async for message in self._from_client:
                    line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._stdin.send(line.encode() + b"\n")

    async def listen(self) -> None:
        """Take the server's diagnostics."""
        lines = BufferedByteReceiveStream(self._stderr)
        try:
            async with _drained(self._stderr):
                while True:
                    code = _code(await lines.receive_until(b"\n", _LINE_LIMIT_BYTES))
                    if code is not None:
                        self.said = [*self.said, code][-_SAID_LIMIT:]
        finally:
            self._silent.set()


@asynccontextmanager
async def running_server(
    world: DemoWorld, *, end_within_s: float = DEADLINES.demo_end_s
) -> AsyncIterator[RunningServer]:
    """A server that has ended and was reaped when the block is left, however it is left. Raises `OSError`."""
    with anyio.CancelScope(shield=True):  # cancelled between fork and return, the process would have no owner
        process = await anyio.open_process(
            [sys.executable, "-P", "-m", "pi_session_mcp", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=world.root,
            env=world.environment(os.environ),
            start_new_session=True,  # Ctrl-C in a terminal goes to our group, and we end the server in our own way
        )
    server = RunningServer(process, end_within_s)
    async with anyio.create_task_group() as tasks:
        for task in (server.deliver, server.forward, server.listen):
            tasks.start_soon(task)
        try:
            yield server
        finally:
            await server.end()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await process.aclose()
                server.hang_up()


def _message(line: bytes) -> SessionMessage | Exception:
    """The message in a line. A line that is no message becomes an exception, as the client library expects."""
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


def _code(line: bytes) -> str | None:
    """The code of one diagnostic."""
    try:
        diagnostic = json.loads(line)
    except ValueError:
        return None
    code = diagnostic.get("code") if isinstance(diagnostic, dict) else None
    return code if isinstance(code, str) and re.fullmatch("[a-z_]{1,64}", code) else None


@asynccontextmanager
async def _drained(stream: ByteReceiveStream) -> AsyncIterator[None]:
    """Keep reading until the stream ends, however the block ends: a server that cannot write cannot end."""
    try:
        with suppress(*_GONE, anyio.IncompleteRead, anyio.DelimiterNotFound):
            yield
    finally:
        with anyio.CancelScope(shield=True), suppress(*_GONE):
            while True:
                await stream.receive()
