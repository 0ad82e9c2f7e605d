"""The process of one external MCP server, or of a judge, under a keeper. Knows nothing of the MCP SDK."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.keeper.child import Command
from pi_session_mcp.keeper.pipes import INPUT, OUTPUT
from pi_session_mcp.keeper.running import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pi_session_mcp.keeper.child import Child


@dataclass(frozen=True, slots=True)
class Launch:
    """What it takes to start a server. `environment` is its whole environment."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str


@asynccontextmanager
async def running_server(launch: Launch, grace_s: float = DEADLINES.mcp_grace_s) -> AsyncIterator[Child]:
    """A started server. Leaving the block ends its input, and nothing of its tree is left afterwards.

    A server that has not ended after `grace_s` gets TERM, and as much later it is killed. What it writes to stderr goes
    nowhere. Raises `OSError` when it cannot be started; nothing is left open then.
    """
    command = Command(
        argv=launch.argv,
        environment=launch.environment,
        directory=launch.directory,
        grace_s=DEADLINES.mcp_grace_s,
        streams=(INPUT, OUTPUT),
    )
    async with running(command) as server:
        try:
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await _end(server, grace_s)


async def _end(server: Child, grace_s: float) -> None:
    server.hang_up()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_drain, server)  # a server that waits until it is read could not end
        tasks.start_soon(_hurry, server, grace_s)
        await server.gone()
        tasks.cancel_scope.cancel()


async def _drain(server: Child) -> None:
    async for _ in server.chunks(OUTPUT):
        pass


async def _hurry(server: Child, grace_s: float) -> None:
    await anyio.sleep(grace_s)
    server.ask()
    await anyio.sleep(grace_s)
    server.end()
