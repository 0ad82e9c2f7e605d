"""All sessions of one server: their places, their ids, and their common end."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Self

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.sessions.background import Background
from pi_session_mcp.sessions.clock import Clock, wall_clock
from pi_session_mcp.sessions.ports import SessionSpec
from pi_session_mcp.sessions.session import Session, Shared

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from types import TracebackType

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.diagnostics import Report
    from pi_session_mcp.sessions.ports import PiSession, PiSessions
    from pi_session_mcp.sessions.turn import OnProgress
    from pi_session_mcp.sessions.views import SessionView, TurnView

MAX_TOMBSTONES: Final = 100
"""So many closed sessions keep their last view, for a client that closes again."""


class Registry:
    """The sessions of one server. An `async with` that, when left, closes what is open within its bound.

    A cancelled call returns at once, and what it had begun is finished or undone in the background. Every refusal is a
    `Refusal` with its code.
    """

    def __init__(
        self,
        configuration: Configuration,
        pi: PiSessions,
        *,
        report: Report,
        deadlines: Deadlines = DEADLINES,
        wall: Callable[[], datetime] = wall_clock,
    ) -> None:
        self._configuration = configuration
        self._pi = pi
        self._deadlines = deadlines
        self._background = Background(report)
        self._around = Shared(Clock(wall), self._deadlines, self._background)
        self._starts: set[_Start] = set()
        self._sessions: dict[str, Session] = {}
        self._tombstones: OrderedDict[str, SessionView] = OrderedDict()
        self._stopping = False
        self._stopped = anyio.Event()

    async def __aenter__(self) -> Self:
        await self._background.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self.shutdown()
        return await self._background.__aexit__(kind, error, trace)

    @property
    def is_idle(self) -> bool:
        """Whether no session is open or under way and nothing runs in the background."""
        return self._background.is_idle and not self._sessions and not self._starts

    # --- sessions ---------------------------------------------------------------------------------------------------

    async def start(self, workspace: str, profile: str | None = None) -> SessionView:
        """Start a session in the workspace, by the profile or the default one (aliases), and return its view.

        Raises `Refusal`. A cancelled call leaves nothing behind: a session that still arrives for it is disposed of,
        and counts towards the limit until then.
        """
        start = self._begin_start(self._spec(workspace, profile))
        try:
            await start.settled.wait()
            # The last look at cancellation: nothing below waits.
            await checkpoint_if_cancelled()
        except anyio.get_cancelled_exc_class():
            start.refuse(Refusal(Code.SERVER_STOPPING))
            raise
        if start.refusal is None and start.session.host_is_gone:
            start.refuse(Refusal(Code.PI_RUNTIME_UNAVAILABLE))
        if start.refusal is not None:
            raise start.refusal
        self._starts.discard(start)
        self._sessions[start.session.id] = start.session
        return start.session.view()

    def list(self) -> tuple[SessionView, ...]:
        """The sessions that are not yet closed, oldest first."""
        return tuple(session.view() for session in self._sessions.values())

    def get(self, session_id: str) -> SessionView:
        """The session as it is now. Raises `Refusal(UNKNOWN_SESSION)`."""
        return self._session(session_id).view()

    def get_open(self, session_id: str) -> SessionView:
        """The session as it is now, if it has not begun to close: then it is unknown, and so are its turns."""
        return self._open_session(session_id).view()

    async def abort(self, session_id: str) -> SessionView:
        """Abort what runs in the session; see `Session.abort`."""
        return await self._session(session_id).abort()

    async def close(self, session_id: str) -> SessionView:
        """Close the session and return its last view; if it has been closed before, the same view again.

        A caller who is cancelled does not stop the closing.
        """
        tombstone = self._tombstones.get(session_id)
        if tombstone is not None:
            return tombstone
        session = self._session(session_id)
        session.begin_close(Code.UNKNOWN_SESSION)
        await session.closed.wait()
        return session.view()

    # --- turns ------------------------------------------------------------------------------------------------------

    async def prompt(self, session_id: str, text: str) -> tuple[SessionView, TurnView]:
        """Hand `text` to Pi and return when Pi has accepted it; see `Session.prompt`."""
        if self._stopping:
            raise Refusal(Code.SERVER_STOPPING)
        return await self._session(session_id).prompt(text)

    def turn(self, session_id: str, turn_id: str) -> TurnView:
        """The turn as it is now. Raises `Refusal` with `UNKNOWN_SESSION` or `UNKNOWN_TURN`."""
        return self._open_session(session_id).turn(turn_id).view()

    async def wait_turn(
        self,
        session_id: str,
        turn_id: str,
        *,
        timeout_s: float,
        on_progress: OnProgress | None = None,
    ) -> TurnView:
        """The turn when it is terminal, or after `timeout_s` as it is then; see `Turn.wait`."""
        turn = self._open_session(session_id).turn(turn_id)
        return await turn.wait(
            timeout_s=timeout_s, interval_s=self._deadlines.progress_interval_s, on_progress=on_progress
        )

    # --- the end ----------------------------------------------------------------------------------------------------

    async def shutdown(self) -> None:
        """Close everything at once and return when nothing is open, or when the bound has passed.

        Idempotent, and not interrupted by cancellation. Calls that wait for a start or a turn get `server_stopping`.
        """
        with anyio.CancelScope(shield=True):
            if self._stopping:
                await self._stopped.wait()
                return
            self._stopping = True
            for start in tuple(self._starts):
                start.refuse(Refusal(Code.SERVER_STOPPING))
            for session in tuple(self._sessions.values()):
                session.begin_close(Code.SERVER_STOPPING)
            with anyio.move_on_after(self._deadlines.registry_shutdown_s):
                # All closes and running starts are tasks there, and so are disposals that take longer than their close.
                await self._background.wait_until_idle()
            self._background.cancel_all()
            self._stopped.set()

    # --- starting ---------------------------------------------------------------------------------------------------

    def _spec(self, workspace: str, profile: str | None) -> SessionSpec:
        if self._stopping:
            raise Refusal(Code.SERVER_STOPPING)
        directory = self._configuration.workspaces.get(workspace)
        if directory is None:
            raise Refusal(Code.UNKNOWN_WORKSPACE)
        alias = self._configuration.default_profile if profile is None else profile
        content = self._configuration.execution_profiles.get(alias)
        if content is None:
            raise Refusal(Code.UNKNOWN_EXECUTION_PROFILE)
        if len(self._sessions) + len(self._starts) >= self._configuration.max_sessions:
            raise Refusal(Code.SESSION_LIMIT_REACHED)
        return SessionSpec(workspace=workspace, directory=directory, profile_alias=alias, profile=content)

    def _begin_start(self, spec: SessionSpec) -> _Start:
        start = _Start(Session(spec, self._around, self._forget))
        self._starts.add(start)
        self._background.start(lambda: self._create(start, spec))
        return start

    async def _create(self, start: _Start, spec: SessionSpec) -> None:
        refusal = Refusal(Code.INTERNAL_ERROR)
        try:
            pi = await self._pi.create(spec, start.session)
        except Refusal as refused:
            refusal = refused
        else:
            start.arrive(pi)
        finally:
            if not start.has_arrived:
                self._starts.discard(start)
                start.refuse(refusal)

    def _forget(self, session: Session) -> None:
        """A session has closed. If a client knew it, its last view stays for a while."""
        if self._sessions.pop(session.id, None) is not None:
            self._tombstones[session.id] = session.view()
            if len(self._tombstones) > MAX_TOMBSTONES:
                self._tombstones.popitem(last=False)
        for start in tuple(self._starts):
            if start.session is session:
                self._starts.discard(start)

    # ----------------------------------------------------------------------------------------------------------------

    def _session(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise Refusal(Code.SERVER_STOPPING if self._stopping else Code.UNKNOWN_SESSION)
        return session

    def _open_session(self, session_id: str) -> Session:
        session = self._session(session_id)
        if not session.is_open:
            raise Refusal(Code.SERVER_STOPPING if self._stopping else Code.UNKNOWN_SESSION)
        return session


class _Start:
    """A session that is being created. It counts towards the limit until it is admitted or gone."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.refusal: Refusal | None = None
        self.has_arrived = False
        self.settled = anyio.Event()
        """Set when its caller need not wait any longer."""

    def arrive(self, pi: PiSession) -> None:
        """The Pi session is ready. If its caller has gone, it is closed."""
        self.has_arrived = True
        self.session.admit(pi)
        self.settled.set()
        self._close_if_abandoned()

    def refuse(self, why: Refusal) -> None:
        """The caller gets no session, or has gone. The first reason counts."""
        self.refusal = self.refusal or why
        self.settled.set()
        self._close_if_abandoned()

    def _close_if_abandoned(self) -> None:
        if self.has_arrived and self.refusal is not None:
            self.session.begin_close(Code.UNKNOWN_SESSION)
