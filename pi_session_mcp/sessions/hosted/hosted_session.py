"""One Pi session on a real Pi host: its requests, its events, and its end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.bridge.results import Delivered, Failed
from pi_session_mcp.bridge.servers import ToolCall
from pi_session_mcp.errors import Code, HostGone, Refusal
from pi_session_mcp.host.client import HostFailed
from pi_session_mcp.host.protocol import (
    Abort,
    Activity,
    Call,
    Cancel,
    Checked,
    CheckResult,
    Dispose,
    Done,
    Empty,
    Image,
    Prompt,
    PromptResult,
    Run,
    Settled,
)
from pi_session_mcp.sessions.outcome import outcome_of
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.terms.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_session_mcp.bridge.results import Outcome as CallOutcome
    from pi_session_mcp.bridge.servers import SessionServers
    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.host.client import ResultT
    from pi_session_mcp.host.host import Host
    from pi_session_mcp.host.protocol import Check, LeftOut, Request, SessionFrame
    from pi_session_mcp.sessions.ports import SessionEvents


MAX_CALL_BYTES: Final = 16 * 1024 * 1024
"""The arguments of all running calls of one session, together."""


class _Checking:
    """How far the questions before a session's creation have come. Each has `step_s`."""

    def __init__(self, step_s: float) -> None:
        self.answered = 0
        self.waiting = anyio.CancelScope()
        self._step_s = step_s
        self._wait()

    def go_on(self) -> None:
        """One more was answered with yes."""
        self.answered += 1
        self._wait()

    def _wait(self) -> None:
        self.waiting.deadline = anyio.current_time() + self._step_s


class HostedSession:
    """`ports.PiSession` on a real Pi host. It also receives the host's events.

    The host must be occupied for it before. The session vacates the host when it leaves, and a host of its own ends
    with it. Raises `HostGone` if the host has ended already; then the caller vacates it.
    """

    def __init__(self, host: Host, events: SessionEvents, deadlines: Deadlines, *, own_host: bool) -> None:
        self.selection = Selection("", "", "")
        self.left_out: Sequence[LeftOut] = ()
        """One word for each instruction file that was left out: the reason."""
        self._host = host
        self._client = host.client
        self._events = events
        self._deadlines = deadlines
        self._own_host = own_host
        self._placed = self._occupies = True
        self._servers: SessionServers | None = None
        self._call_bytes = 0
        self._checking: _Checking | None = None
        self.key = self._client.place(self)

    @property
    def own_host(self) -> bool:
        """See `ports.PiSession.own_host`."""
        return self._own_host

    def own_servers(self, servers: SessionServers) -> None:
        """Run this session's calls on these servers from now on, and end them with it."""
        self._servers = servers

    async def ask(
        self, request: Request, result: type[ResultT], *, within_s: float, runs_extensions: bool = False
    ) -> ResultT:
        """One request of this session's creation. Raises `TimeoutError`, `HostFailed` and `HostGone`.

        The host is pinged when half of the time has passed, unless the request runs code of extensions. Such code may
        keep the host from answering, so the caller ends the host when the time has passed.
        """
        watch_after_s = None if runs_extensions else within_s / 2
        return await self._client.request(request, result, within_s=within_s, watch_after_s=watch_after_s)

    async def check(self, request: Check, *, step_s: float) -> tuple[int, bool | None]:
        """How many questions were answered with yes, and whether the one after them was answered with no.

        `None` in place of that: it has failed, or had no answer within `step_s`. Raises `HostGone`.
        """
        found: bool | None = None
        checking = self._checking = _Checking(step_s)
        with checking.waiting, suppress(HostFailed):
            found = (await self._client.request(request, CheckResult, watch_after_s=step_s / 2)).found
        return checking.answered, found

    async def prompt(self, turn: int, text: str) -> Preflight:
        """See `ports.PiSession.prompt`."""
        request = Prompt(session=self.key, turn=turn, text=text)
        try:
            result = await self._client.request(request, PromptResult, watch_after_s=self._deadlines.preflight_s / 2)
        except HostFailed:
            return Preflight.REJECTED
        return Preflight(result.preflight)

    async def abort(self) -> None:
        """See `ports.PiSession.abort`."""
        try:
            await self._client.request(Abort(session=self.key), Empty, watch_after_s=self._deadlines.abort_s / 2)
        except HostFailed as error:
            raise Refusal(Code.ABORT_FAILED) from error

    # --- its end -----------------------------------------------------------------------------------------------------

    async def dispose(self) -> None:
        """See `ports.PiSession.dispose`. A host of its own is gone when this returns."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_servers)
            await self._dispose_in_host()

    async def _end_servers(self) -> None:
        """End this session's servers. A server that takes longer ends in the background."""
        if self._servers is not None:
            with anyio.move_on_after(self._deadlines.mcp_close_s):
                await self._servers.end()

    async def _dispose_in_host(self) -> None:
        if self._placed:
            try:
                await self._client.request(Dispose(session=self.key), Empty, watch_after_s=self._deadlines.close_s / 2)
            except (HostGone, HostFailed):
                pass  # a host that is gone has disposed of it; the caller's bound ends a host that cannot
            finally:
                self._leave()
        if self._own_host:
            await self._host.gone.wait()

    async def discard(self) -> None:
        """Dispose of a session that was not admitted, within a bound, even if the caller is cancelled.

        If its own host takes too long, the host is ended and waited for.
        """
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(self._dispose_within_s):
                await self.dispose()
            if self._own_host:
                self.end_host()
                with anyio.move_on_after(self._deadlines.close_s):
                    await self._host.gone.wait()

    async def abandon(self) -> None:
        """Discard because the whole server is ending, without holding it up.

        A host of its own disposes of the session as it ends, and the pool waits for the host.
        """
        if self._own_host:
            self._leave()
            self._close_servers()
        else:
            await self.discard()

    @property
    def _dispose_within_s(self) -> float:
        """An extension's `session_shutdown` may take as long as a step of the creation."""
        return self._deadlines.creation_step_s if self._own_host else self._deadlines.close_s

    def end_host(self) -> None:
        """See `ports.PiSession.end_host`."""
        if self._own_host:
            self._host.end(now=True)
        else:
            self._host.retire()
            self._vacate()  # otherwise a session that was given up would keep its host alive

    def retire_shared_host(self) -> None:
        """Place the next session on another host, which remembers nothing of this one."""
        if not self._own_host:
            self._host.retire()

    def _close_servers(self) -> None:
        if self._servers is not None:
            self._servers.close()

    def _leave(self) -> None:
        if self._placed:
            self._placed = False
            self._client.remove(self.key)
            self._vacate()

    def _vacate(self) -> None:
        if self._occupies:
            self._occupies = False
            self._host.vacate()

    # --- events of the host ------------------------------------------------------------------------------------------

    def host_event(self, event: SessionFrame) -> None:
        """Pass an event on to the registry, or a call to the session's external servers."""
        match event:
            case Checked():
                if self._checking is not None:
                    self._checking.go_on()
            case Activity(turn=turn):
                self._events.activity(turn)
            case Settled(turn=turn, stopReason=reason, aborted=aborted, text=text):
                self._events.settled(turn, outcome_of(reason, aborted=aborted, text=text))
            case Run(active=active):
                self._events.foreign_run(active=active)
            case Call():
                self._begin_call(event)
            case Cancel(cancel=number):
                if self._servers is not None:
                    self._servers.cancel(number)

    def _begin_call(self, call: Call) -> None:
        size = len(call.arguments) + len(call.given)
        self._call_bytes += size

        def end(outcome: CallOutcome) -> None:
            self._call_bytes -= size
            self._client.end_call(_done(call.call, outcome))

        if self._servers is None or self._call_bytes > MAX_CALL_BYTES:
            end(Failed())
        else:
            self._servers.begin(ToolCall(call.call, call.tool, call.arguments, call.given), end)

    def host_ended(self) -> None:
        """The host is gone, and this session with it. So its external servers are closed."""
        self._leave()
        self._close_servers()
        self._events.host_ended()


def _done(number: int, outcome: CallOutcome) -> Done:
    match outcome:
        case Delivered(texts=texts, details=details, images=images):
            shown = [Image(at=one.at, data=one.data, mimeType=one.mime_type) for one in images]
            return Done(done=number, failed=False, texts=list(texts), details=details, images=shown)
        case Failed(text=text):
            return Done(done=number, failed=True, texts=[text])
