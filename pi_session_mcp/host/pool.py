"""Decides which host a session is placed on, and owns all hosts."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import anyio

from pi_session_mcp.host.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from anyio.abc import TaskGroup

    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.diagnostics import Report
    from pi_session_mcp.host.process import HostProcess, Launch


@dataclass(frozen=True, slots=True)
class EarlyHost:
    """A host that was started before there was a pool: the shared one, or a `spare` for a session with extensions."""

    process: HostProcess
    spare: bool


class HostPool:
    """The shared host, and the hosts that have one session alone.

    An async context manager. Leaving it ends every host and returns when none of their processes is left. An `early`
    host belongs to the pool from the beginning.
    """

    def __init__(
        self,
        prepare: Callable[[], Launch],
        deadlines: Deadlines,
        report: Report,
        count: Callable[[int, int], None],
        early: EarlyHost | None = None,
    ) -> None:
        self._early = early
        self._prepare = prepare
        self._deadlines = deadlines
        self._report = report
        self._count = count
        self._hosts: set[Host] = set()
        self._shared: Host | None = None
        self._spare: Host | None = None
        self._is_over = False
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        if self._early is not None:
            self._adopt(self._early)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._is_over = True
        for host in self._hosts:
            # A host that has not loaded the SDK has no session and no lock of Pi's, so it need not end by itself.
            host.end(now=not host.has_greeted)
        return await self._stack.__aexit__(kind, error, trace)

    async def shared(self) -> Host:
        """The shared host, ready and occupied for the caller's session. The caller vacates it.

        Raises `Refusal(PI_RUNTIME_UNAVAILABLE)` when the host does not come up. The next call tries another one.
        """
        return await self._occupied(self._shared_host())

    async def own(self) -> Host:
        """A host for one session alone, ready and occupied: the spare one, if there is one. Raises as `shared` does.

        `warm` starts the next spare, so that its start does not slow down the session that this one is for.
        """
        host, self._spare = self._spare_host(), None
        host.retiring = True  # it then ends when its session leaves
        return await self._occupied(host)

    def warm(self, *, shared: bool = True, spare: bool = False) -> None:
        """Start the shared host, and a spare one for `own`, unless they are there already. Returns at once."""
        if shared and not self._is_over:
            self._shared_host()
        if spare and not self._is_over:
            self._spare_host()

    def _shared_host(self) -> Host:
        if self._shared is None or not self._shared.usable:
            self._shared = self._start(self._prepare)
        return self._shared

    def _spare_host(self) -> Host:
        if self._spare is None or not self._spare.usable:
            self._spare = self._start(self._prepare_for_extensions)
        return self._spare

    def _prepare_for_extensions(self) -> Launch:
        return for_extensions(self._prepare())

    async def _occupied(self, host: Host) -> Host:
        host.occupy()
        try:
            await host.ready()
        except BaseException:
            host.vacate()
            raise
        return host

    def _adopt(self, early: EarlyHost) -> None:
        host = self._start(self._prepare, early.process)
        if early.spare:
            self._spare = host
        else:
            self._shared = host

    def _start(self, prepare: Callable[[], Launch], started: HostProcess | None = None) -> Host:
        host = Host(prepare, self._deadlines, self._report, self._count, started)
        self._hosts.add(host)
        self._tasks.start_soon(self._live, host)
        return host

    async def _live(self, host: Host) -> None:
        try:
            await host.run()
        finally:
            self._hosts.discard(host)


def for_extensions(launch: Launch) -> Launch:
    """The launch of a host for extensions: they import the SDK by its name, and must get the SDK that the host runs."""
    return replace(launch, bundle=None)
