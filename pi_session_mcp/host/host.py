"""One Pi host, from before its start until nothing of it is left."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.diagnostics import Diagnostic, Event
from pi_session_mcp.errors import Code, HostGone, Refusal, Stage
from pi_session_mcp.host import process
from pi_session_mcp.host.client import HostClient, HostFailed, HostOverran, ProtocolBroken
from pi_session_mcp.host.selection import acceptable
from pi_session_mcp.keeper.child import CommandNotStarted
from pi_session_mcp.keeper.running import owned

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.diagnostics import Report
    from pi_session_mcp.host.process import HostProcess, Launch


class EndReason(StrEnum):
    """Why a host ended. Every reason but `ASKED` is reported."""

    ASKED = "asked"
    EXITED = "exited"
    PROTOCOL = "protocol"
    OVERRUN = "overrun"
    UNRESPONSIVE = "unresponsive"
    NOT_STARTED = "not_started"


class Host:
    """A Pi host, and how many sessions are placed on it. It was `started` before, or is launched when `run` begins.

    `run` is its whole life and belongs to one task. Everything else may be called from any task. `client` may be used
    after `ready` has returned.
    """

    def __init__(
        self,
        prepare: Callable[[], Launch],
        deadlines: Deadlines,
        report: Report,
        count: Callable[[int, int], None],
        started: HostProcess | None = None,
    ) -> None:
        self._prepare = prepare
        self._started = started
        self._deadlines = deadlines
        self._report = report
        self._count = count
        self._greeted = anyio.Event()
        self._ending = anyio.Event()
        self._ending_now = anyio.Event()
        self.gone = anyio.Event()
        """Set when no process of the host is alive."""
        self._reason: EndReason | None = None
        self._client: HostClient | None = None
        self.retiring = False
        self.sessions = 0
        """How many sessions are placed here, with those that are being made."""
        self._changed = anyio.Event()

    # --- for its users -----------------------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether a new session may be placed here."""
        return not self.retiring and self._reason is None

    @property
    def has_greeted(self) -> bool:
        """Whether the SDK may be at work in the host."""
        return self._client is not None and self._greeted.is_set()

    @property
    def client(self) -> HostClient:
        """The channel. Raises `HostGone` when there is none."""
        if self._client is None:
            raise HostGone
        return self._client

    async def ready(self) -> None:
        """Wait until the host has greeted. Raises `Refusal(PI_RUNTIME_UNAVAILABLE)` when it did not come up."""
        await self._greeted.wait()
        if self._client is None or self._reason is not None:
            raise Refusal(Code.PI_RUNTIME_UNAVAILABLE, stage=Stage.RUNTIME)

    def occupy(self) -> None:
        """A session is placed here."""
        self.sessions += 1
        self._note_change()

    def vacate(self) -> None:
        """A session has left. A retiring host ends with its last session."""
        self.sessions -= 1
        self._note_change()
        if self.retiring and self.sessions == 0:
            self.end()

    def retire(self) -> None:
        """Take no new session and end with the last one, or at once if there is none."""
        self.retiring = True
        if self.sessions == 0:
            self.end()

    def end(self, *, now: bool = False, reason: EndReason = EndReason.ASKED) -> None:
        """Begin the end. With `now` the host has no time to dispose of its sessions. Returns at once; see `gone`."""
        if self._reason is None:
            self._reason = reason
        self._ending.set()
        if now:
            self._ending_now.set()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # --- its life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, greet, serve, end. Returns when no process of the host is left, also when cancelled."""
        try:
            started = self._started or process.start(self._prepare(), self._deadlines.host_grace_s)
        except (Refusal, OSError):
            self._finish(EndReason.NOT_STARTED)
            self.gone.set()
            return
        async with owned(started.child), anyio.create_task_group() as draining:
            draining.start_soon(started.drain, self._count)
            draining.start_soon(self._hurry, started)
            try:
                await self._serve(started)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._end(started)
                draining.cancel_scope.cancel()
        self.gone.set()

    async def _serve(self, started: HostProcess) -> None:
        client = HostClient(started.channel)
        async with anyio.create_task_group() as tasks:
            self._client = client
            tasks.start_soon(self._receive, client)
            tasks.start_soon(client.transmit)
            tasks.start_soon(self._attend_keeper, started)
            tasks.start_soon(self._greet, client)
            tasks.start_soon(self._watch, client)
            tasks.start_soon(self._end_on, client.broken, EndReason.PROTOCOL)
            tasks.start_soon(self._end_on, client.overran, EndReason.OVERRUN)
            tasks.start_soon(self._end_when_idle)
            await self._ending.wait()
            tasks.cancel_scope.cancel()

    async def _receive(self, client: HostClient) -> None:
        try:
            await client.receive()
        except ProtocolBroken:
            self.end(now=True, reason=EndReason.PROTOCOL)
        except HostOverran:
            self.end(now=True, reason=EndReason.OVERRUN)
        else:
            self.end(reason=EndReason.EXITED)

    async def _attend_keeper(self, started: HostProcess) -> None:
        try:
            await started.child.started()
        except CommandNotStarted:
            self.end(now=True, reason=EndReason.NOT_STARTED)
        else:
            await started.child.over()
            self.end(reason=EndReason.EXITED)

    async def _greet(self, client: HostClient) -> None:
        try:
            hello = await client.greeted(within_s=self._deadlines.host_start_s)
        except (TimeoutError, HostFailed, HostGone):
            self.end(now=True, reason=EndReason.NOT_STARTED)
            return
        if acceptable(hello):
            self._greeted.set()
        else:
            self.end(now=True, reason=EndReason.NOT_STARTED)

    async def _watch(self, client: HostClient) -> None:
        """Ping when a request is overdue; end the host when it does not answer."""
        while True:
            await client.overdue.wait()
            try:
                if not await client.ping(within_s=self._deadlines.host_ping_s):
                    self.end(now=True, reason=EndReason.UNRESPONSIVE)
            except HostGone:
                return
            client.overdue = anyio.Event()

    async def _end_on(self, fault: anyio.Event, reason: EndReason) -> None:
        await fault.wait()
        self.end(now=True, reason=reason)

    async def _end_when_idle(self) -> None:
        while True:
            changed = self._changed
            with anyio.move_on_after(None if self.sessions else self._deadlines.host_idle_s) as waiting:
                await changed.wait()
            if waiting.cancelled_caught:
                self.end()
                return

    async def _end(self, started: HostProcess) -> None:
        reason = self._reason or EndReason.ASKED
        self._finish(reason)
        started.child.let_go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hurry, started)
            await started.child.gone()
            tasks.cancel_scope.cancel()

    async def _hurry(self, started: HostProcess) -> None:
        """Runs beside everything else, so that the kill does not wait for other tasks to end."""
        await self._ending_now.wait()
        started.child.end()

    def _finish(self, reason: EndReason) -> None:
        self._reason = reason
        self._ending.set()
        self._greeted.set()
        if self._client is not None:
            self._client.close()
        if reason is not EndReason.ASKED:
            self._report(Diagnostic(level="error", event=Event.PI_HOST_EXITED, reason=reason.value))
