"""The process of one external MCP server, or of a judge, under a keeper. Knows nothing of the MCP SDK."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.keeper import kept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.keeper.kept import Kept

GRACE_S: Final = 2.0
"""After the end of its input, and again after TERM, a server may take this long to end."""
_CHUNK_BYTES: Final = 65_536
_STDIN: Final = 0


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

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End its input, then the server, after so much time with TERM, and as much later for certain.

        Nothing of its tree is left. Shield it.
        """
        if self._input is not None:
            anyio.notify_closing(self._input)
            os.close(self._input)
            self._input = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain)  # one that waits to write its last words could not end
            tasks.start_soon(self._hurry, grace_s)
            await self._keeper.gone()
            tasks.cancel_scope.cancel()
        anyio.notify_closing(self._output)
        os.close(self._output)

    async def _drain(self) -> None:
        while await self.read():
            pass

    async def _hurry(self, grace_s: float) -> None:
        await anyio.sleep(grace_s)
        self._keeper.ask()
        await anyio.sleep(grace_s)
        self._keeper.end()


def start(launch: Launch) -> ServerProcess:
    """Start a server. Raises `OSError`; nothing is left open then. What it writes to stderr goes nowhere."""
    (their_input, our_input), (our_output, their_output) = kept.open_pipes(2)
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
