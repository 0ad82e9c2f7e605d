"""Puts the parts of one server together, and takes them apart in the right order."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from pi_session_mcp.bridge.servers import ExternalServers
from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.diagnostics import Event
from pi_session_mcp.extensions.check import place_of
from pi_session_mcp.host.pool import HostPool
from pi_session_mcp.runtime.agent_directory import agent_directory, ignored_variable
from pi_session_mcp.runtime.compile_cache import prune
from pi_session_mcp.runtime.record import writable_place
from pi_session_mcp.server.launching import Inherited, launcher
from pi_session_mcp.server.tool_calls import ToolCalls
from pi_session_mcp.sessions.hosted.creation import HostedSessions
from pi_session_mcp.sessions.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from anyio.abc import TaskGroup

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.diagnostics import Diagnostic, Report
    from pi_session_mcp.host.pool import EarlyHost
    from pi_session_mcp.sessions.ports import PiSessions


@dataclass(frozen=True, slots=True)
class Assembly:
    """The working parts of a server."""

    registry: Registry
    external: ExternalServers
    tools: ToolCalls

    async def shutdown(self) -> None:
        """Close every session; what is still connecting for one is not waited for. See `Registry.shutdown`."""
        self.external.stop()
        await self.registry.shutdown()


@asynccontextmanager
async def assembled(
    configuration: Configuration,
    report: Report,
    count: Callable[[int, int], None],
    deadlines: Deadlines = DEADLINES,
    early: EarlyHost | None = None,
) -> AsyncIterator[Assembly]:
    """The working parts, until the block is left: then sessions close first, and then hosts end.

    `count` takes what hosts print, as (bytes, writes). An `early` host is taken over. When this returns, no process
    that it started is alive.
    """
    around = Inherited.here()
    prepare = launcher(configuration, around)
    async with (
        HostPool(prepare, deadlines, report, count, early) as pool,
        ExternalServers(around.environ, deadlines) as external,
    ):
        pi = HostedSessions(
            pool,
            deadlines,
            configuration.execution_profiles,
            lambda: place_of(configuration, agent_directory(configuration, around.environ, around.cwd)),
            external,
            report,
        )
        async with (
            Registry(configuration, pi, report=report, deadlines=deadlines) as registry,
            anyio.create_task_group() as warming,
        ):
            warming.start_soon(_prune_compile_cache, around.environ)
            warm_soon = _Warmth(pi, warming, deadlines.warm_after_s).soon
            tools = ToolCalls(
                registry, configuration, _naming_an_ignored_variable(report, configuration, around), warm_soon
            )
            yield Assembly(registry, external, tools)
            warming.cancel_scope.cancel()


def _naming_an_ignored_variable(report: Report, configuration: Configuration, around: Inherited) -> Report:
    """`report`, which also says of a failed start that Pi's files were looked for elsewhere than the client meant."""

    def tell(diagnostic: Diagnostic) -> None:
        if diagnostic.event is Event.PI_SESSION_CREATION_FAILED:
            ignored = ignored_variable(configuration, around.environ, around.cwd)
            diagnostic = replace(diagnostic, agent_directory_variable=ignored)
        report(diagnostic)

    return tell


async def _prune_compile_cache(environ: Mapping[str, str]) -> None:
    place = writable_place(environ)
    if place is not None:
        await to_thread.run_sync(partial(prune, place.compile_caches, now=time.time()), abandon_on_cancel=True)


class _Warmth:
    """Starts a host a little after it was asked to, so that the answer that asked is not delayed by it."""

    def __init__(self, pi: PiSessions, tasks: TaskGroup, after_s: float) -> None:
        self._pi = pi
        self._tasks = tasks
        self._after_s = after_s
        self._waits = False

    def soon(self) -> None:
        """Warm a host soon; asking again while that waits changes nothing."""
        if not self._waits:
            self._waits = True
            self._tasks.start_soon(self._warm)

    async def _warm(self) -> None:
        await anyio.sleep(self._after_s)
        self._waits = False
        self._pi.warm()
