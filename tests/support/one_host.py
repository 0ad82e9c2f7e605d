"""Sessions with extensions on one real host for all of them, created in this process with bounds of the test's own."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pi_session_mcp.bridge.servers import ExternalServers
from pi_session_mcp.config.load import load
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.extensions.resolve import Place
from pi_session_mcp.host.host_environment import host_environment
from pi_session_mcp.host.pool import HostPool
from pi_session_mcp.host.process import Launch
from pi_session_mcp.sessions.hosted.creation import HostedSessions
from pi_session_mcp.sessions.ports import SessionSpec
from tests.contract.pi_worlds import Heard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pi_session_mcp.diagnostics import Diagnostic
    from pi_session_mcp.runtime.locate import Runtime
    from pi_session_mcp.sessions.hosted.hosted_session import HostedSession
    from pi_session_mcp.sessions.ports import SessionEvents
    from tests.support.real import RealWorld


class OneHost(HostedSessions):
    """A host for each session takes many times as long. What ends with its host only does is not seen here."""

    said: list[Diagnostic]
    world: RealWorld

    async def _place_session(self, events: SessionEvents, *, own_host: bool) -> HostedSession:
        return await super()._place_session(events, own_host=False)

    async def start(self, alias: str) -> HostedSession:
        """A session of this profile of the world's configuration. Raises `Refusal`."""
        profile = load(self.world.configuration).execution_profiles[alias]
        return await self.create(SessionSpec("project", self.world.workspace, alias, profile), Heard())


@asynccontextmanager
async def on_one_host(world: RealWorld, runtime: Runtime, deadlines: Deadlines) -> AsyncIterator[OneHost]:
    """Sessions of the world's profiles, until the block is left."""
    environment = host_environment(world.environment, agent_directory=world.agent_directory, tools=runtime.tools)
    launch = Launch(runtime.node, runtime.sdk_entry, None, runtime.compile_cache, environment)
    place = Place(world.agent_directory, (world.workspace,))
    bounds = Deadlines(host_start_s=60.0, host_ping_s=60.0, host_idle_s=600.0)
    said: list[Diagnostic] = []
    async with (
        HostPool(lambda: launch, bounds, said.append, lambda *_: None) as pool,
        ExternalServers({}, Deadlines(mcp_startup_s=60.0, mcp_call_s=60.0)) as external,
    ):
        sessions = OneHost(pool, deadlines, {}, lambda: place, external, said.append)
        sessions.world, sessions.said = world, said
        yield sessions
