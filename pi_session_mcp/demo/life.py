"""One run of the server: start it, connect to it, use it, end it, and look whether anything of it is left."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from mcp.client import Client

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.demo.server import running_server
from pi_session_mcp.demo.steps import NotSeen, Seen, require
from pi_session_mcp.demo.walk import Walk

if TYPE_CHECKING:
    from pi_session_mcp.demo.server import RunningServer
    from pi_session_mcp.demo.steps import Steps
    from pi_session_mcp.demo.world import DemoWorld

_LEAST_PROCESSES: Final = 3
"""The server, a keeper and a Pi host. If fewer were seen, the look came at a wrong moment, and the step failed."""


async def live(steps: Steps, world: DemoWorld) -> None:
    """Take the steps from the server's start to its end. When this returns, no process of it is alive."""
    async with AsyncExitStack() as lifetime:
        async with AsyncExitStack() as conversation:
            opening = _Opening(world, lifetime, conversation)
            # No time limit around this step: what it opens has to stay open. The client limits each request.
            if not await steps.take("The server answers the handshake", opening.shake_hands, within_s=math.inf):
                return
            whole = await Walk(opening.client, world).take(steps)
        # Also after a step that failed: nothing may be left behind.
        await steps.take("The server ends and leaves nothing", lambda: _end(opening.server, world, whole=whole))


class _Opening:
    """Starts the server in `lifetime` and connects a client to it in `conversation`."""

    client: Client
    server: RunningServer

    def __init__(self, world: DemoWorld, lifetime: AsyncExitStack, conversation: AsyncExitStack) -> None:
        self._world = world
        self._lifetime = lifetime
        self._conversation = conversation

    async def shake_hands(self) -> Seen:
        """From starting the server's process until the client is connected."""
        self.server = await self._lifetime.enter_async_context(running_server(self._world))
        client = Client(self.server.transport(), read_timeout_seconds=DEADLINES.demo_step_s)
        try:
            self.client = await self._conversation.enter_async_context(client)
        except Exception:  # noqa: BLE001 - the client library's texts are foreign; all that matters is that no answer came
            await self.server.end()  # after its end, all of its diagnostics have arrived
            raise NotSeen("The server did not answer.", *self.server.said) from None
        return Seen.lines(f"MCP {self.client.protocol_version}")


async def _end(server: RunningServer, world: DemoWorld, *, whole: bool) -> Seen:
    """End the server. After the `whole` walk a Pi host must have been there before."""
    family = server.family()
    before = family.alive()
    status = await server.end()
    after, files = family.alive(), world.left_over()
    told = (f"processes after: {after}", f"temporary files: {files}")
    require(before >= _LEAST_PROCESSES or not whole, f"Only {before} processes were found before the end.")
    require((status, after, files) == (0, 0, 0), f"exit status: {status}", *server.said, *told)
    return Seen.lines(f"processes before: {before}", *told)
