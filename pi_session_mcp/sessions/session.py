"""One session: what Pi says of it, what clients ask of it, and how it ends."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from pi_session_mcp.errors import Code, HostGone, Refusal
from pi_session_mcp.sessions.abort import AbortAttempt
from pi_session_mcp.sessions.state import Life, SessionEvent, SessionState, TurnState, next_life
from pi_session_mcp.sessions.turn import Turn
from pi_session_mcp.sessions.views import SessionView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.sessions.background import Background, Cancellable
    from pi_session_mcp.sessions.clock import Clock
    from pi_session_mcp.sessions.outcome import Outcome
    from pi_session_mcp.sessions.ports import PiSession, SessionSpec
    from pi_session_mcp.sessions.views import TurnView

MAX_TURNS: Final = 20
"""So many of its latest turns a session keeps."""

_UNCHANGED_BY: Final = frozenset({SessionEvent.PROMPT_HANDED, SessionEvent.PROMPT_WITHDRAWN})
"""A prompt that never becomes a turn leaves no trace, so neither its beginning nor its end moves `updatedAt`."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What every session of a registry shares."""

    clock: Clock
    deadlines: Deadlines
    background: Background


class Session:
    """A Pi session and its turns. It is the `SessionEvents` of its Pi session.

    Every decision is made synchronously on the event loop, so prompts, closes and events come one after the other. Only
    waiting is asynchronous. What must go on after a cancelled call runs in the background.
    """

    def __init__(self, spec: SessionSpec, around: Shared, on_closed: Callable[[Session], None]) -> None:
        self.id = str(uuid.uuid4())
        self.closed = anyio.Event()
        self._spec = spec
        self._clock = around.clock
        self._deadlines = around.deadlines
        self._background = around.background
        self._on_closed = on_closed
        self._pi: PiSession | None = None
        self._life = Life()
        self._created_at = self._updated_at = self._clock.now()
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._latest_turn_id: str | None = None
        self._turn: Turn | None = None
        """The prompt that was handed to Pi last, even if it never became a turn."""
        self._handed = 0
        self._attempt: AbortAttempt | None = None
        self._foreign_run = False
        self._host_is_gone = False
        self._host_was_given_up = False
        self._disposed = anyio.Event()
        self._calls: set[Cancellable] = set()
        """Calls into Pi that may still be waiting for an answer."""

    def admit(self, pi: PiSession) -> None:
        """Take over the Pi session whose events come here. From now on, closing this session disposes of it."""
        self._pi = pi
        self._created_at = self._updated_at = self._clock.now()

    @property
    def host_is_gone(self) -> bool:
        """Whether the session's host has ended."""
        return self._host_is_gone

    @property
    def is_open(self) -> bool:
        """Whether the session has not begun to close."""
        return self._life.state not in {SessionState.CLOSING, SessionState.CLOSED}

    def view(self) -> SessionView:
        """The session as it is now. Only an admitted session can be seen."""
        return SessionView(
            id=self.id,
            workspace=self._spec.workspace,
            execution_profile=self._spec.profile_alias,
            permission_profile=self._spec.profile.permission_profile,
            selection=self._admitted.selection,
            state=self._life.state,
            created_at=self._created_at,
            updated_at=self._updated_at,
            latest_turn_id=self._latest_turn_id,
            last_error=self._life.last_error,
        )

    def turn(self, turn_id: str) -> Turn:
        """The published turn. Raises `Refusal(UNKNOWN_TURN)`."""
        turn = self._turns.get(turn_id)
        if turn is None:
            raise Refusal(Code.UNKNOWN_TURN)
        return turn

    # --- what Pi says (`SessionEvents`) -----------------------------------------------------------------------------

    def activity(self, turn: int) -> None:
        """See `SessionEvents.activity`."""
        if self._turn is not None and self._turn.number == turn:
            self._turn.hear_sign()

    def settled(self, turn: int, outcome: Outcome) -> None:
        """See `SessionEvents.settled`."""
        if self._turn is not None and self._turn.number == turn:
            self._turn.hear_outcome(outcome)
            self._follow(self._turn)

    def foreign_run(self, *, active: bool) -> None:
        """See `SessionEvents.foreign_run`."""
        self._foreign_run = active

    def host_ended(self) -> None:
        """See `SessionEvents.host_ended`. Also called when a call into Pi finds the host gone; the first one counts."""
        if self._host_is_gone:
            return
        self._host_is_gone = True
        if self._turn is not None:
            self._turn.hear_host_ended(abort_latched=self._attempt is not None)
        self._move(SessionEvent.HOST_ENDED)
        self._cancel_calls()

    # --- prompting --------------------------------------------------------------------------------------------------

    async def prompt(self, text: str) -> tuple[SessionView, TurnView]:
        """Hand `text` to Pi and, once Pi has said `started`, publish the turn.

        Raises `Refusal`. If the caller is cancelled before the publication, there is no turn and never will be.
        """
        self._refuse_prompt_if_busy()
        self._handed += 1
        turn = self._turn = Turn(self._handed, self.id, self._clock)
        self._move(SessionEvent.PROMPT_HANDED)
        self._call(lambda: self._hand_over(turn, text))
        try:
            with anyio.move_on_after(self._deadlines.preflight_s):
                await turn.decided.wait()
            # The last look at cancellation: nothing below waits.
            await checkpoint_if_cancelled()
        except anyio.get_cancelled_exc_class():
            self._abandon(turn)
            raise
        if turn.state is not TurnState.ACCEPTED:
            self._abandon(turn)
            raise Refusal(turn.refusal or Code.PROMPT_TIMEOUT)
        return self._publish(turn)

    def _refuse_prompt_if_busy(self) -> None:
        if not self.is_open:
            raise Refusal(Code.UNKNOWN_SESSION)
        if self._host_is_gone or self._host_was_given_up:
            raise Refusal(Code.PI_RUNTIME_UNAVAILABLE)
        if self._is_busy:
            raise Refusal(Code.SESSION_RUNNING)

    @property
    def _is_busy(self) -> bool:
        """Whether something runs in Pi, or may still run."""
        prompt_is_pending = self._turn is not None and self._turn.is_pending
        return prompt_is_pending or self._attempt is not None or self._foreign_run

    async def _hand_over(self, turn: Turn, text: str) -> None:
        try:
            word = await self._admitted.prompt(turn.number, text)
        except HostGone:
            self.host_ended()
        except Exception:
            # We cannot tell what Pi did with it, so we treat it like a prompt whose caller has gone.
            turn.refusal = turn.refusal or Code.INTERNAL_ERROR
            self._abandon(turn)
            turn.decided.set()
            raise
        else:
            turn.hear_word(word)
            self._follow(turn)

    def _publish(self, turn: Turn) -> tuple[SessionView, TurnView]:
        view = turn.publish()
        self._turns[view.turn_id] = turn
        if len(self._turns) > MAX_TURNS:
            self._turns.popitem(last=False)
        self._latest_turn_id = view.turn_id
        self._move(SessionEvent.TURN_PUBLISHED)
        self._follow(turn)
        return self.view(), view

    def _abandon(self, turn: Turn) -> None:
        """Put the prompt into quarantine, unless it is over: abort it, and wait for both in the background."""
        turn.abandon()
        if turn.state is TurnState.QUARANTINED and self._attempt is None:
            self._begin_abort()
        self._follow(turn)

    def _follow(self, turn: Turn) -> None:
        """Update the session by what became of its latest prompt. A second call changes nothing.

        A caller may learn late that its prompt was rejected, when the next one has been handed over already.
        """
        if turn is not self._turn or not turn.state.is_over:
            return
        match turn.state:
            case TurnState.WITHDRAWN if turn.was_quarantined and self._attempt is not None:
                return
            case TurnState.WITHDRAWN:
                self._move(SessionEvent.PROMPT_WITHDRAWN)
            case TurnState.FAILED:
                self._move(SessionEvent.TURN_FAILED)
            case _:
                self._move(SessionEvent.TURN_ENDED)

    # --- aborting ---------------------------------------------------------------------------------------------------

    async def abort(self) -> SessionView:
        """Abort what runs, and return when it has settled. If nothing runs, nothing changes.

        Raises `Refusal` with `ABORT_TIMEOUT` or `ABORT_FAILED`.
        """
        if self._is_busy and not self._host_is_gone and self.is_open:
            attempt = self._attempt or self._begin_abort()
            await attempt.wait()
        return self.view()

    def _begin_abort(self) -> AbortAttempt:
        pending = self._turn if self._turn is not None and self._turn.is_pending else None
        attempt = AbortAttempt(
            self._admitted, pending, abort_s=self._deadlines.abort_s, on_overdue=self._give_up_on_host
        )
        self._attempt = attempt
        self._call(lambda: self._make(attempt))
        return attempt

    async def _make(self, attempt: AbortAttempt) -> None:
        try:
            await attempt.run()
        finally:
            if attempt.found_host_gone:
                self.host_ended()
            self._attempt = None
            if self._turn is not None:
                if self._turn.state is TurnState.QUARANTINED:
                    self._give_up_on_host()
                self._follow(self._turn)

    def _give_up_on_host(self) -> None:
        """Stop waiting for the host. A host of its own ends and says so; a shared one retires."""
        if not self._host_was_given_up and not self._host_is_gone:
            self._host_was_given_up = True
            self._admitted.end_host()

    # --- closing ----------------------------------------------------------------------------------------------------

    def begin_close(self, why: Code) -> None:
        """Close in the background; `closed` is set when that is done. A second call changes nothing.

        From now on there are no turns, and calls that wait for one are refused with `why`.
        """
        if not self.is_open:
            return
        self._move(SessionEvent.CLOSE_BEGAN)
        if self._turn is not None:
            self._turn.close(why)
        self._turns.clear()
        self._background.start(self._close)

    async def _close(self) -> None:
        deadline = anyio.current_time() + self._deadlines.close_s
        try:
            with anyio.move_on_after(self._deadlines.close_s / 2):
                await self._abort_before_dispose()
            self._background.start(self._dispose)
            with anyio.CancelScope(deadline=deadline):
                await self._disposed.wait()
        finally:
            if not self._disposed.is_set():
                self._give_up_on_host()
            self._cancel_calls()
            self._move(SessionEvent.CLOSE_ENDED)
            self.closed.set()
            self._on_closed(self)

    async def _abort_before_dispose(self) -> None:
        """Abort what runs, unless the host has shown already that it does not answer."""
        if self._is_busy and not self._host_is_gone and not self._host_was_given_up:
            attempt = self._attempt or self._begin_abort()
            await attempt.done.wait()

    async def _dispose(self) -> None:
        """Dispose of the Pi session. This may outlast the close, and ends with the host at the latest."""
        await self._admitted.dispose()
        self._disposed.set()

    # ----------------------------------------------------------------------------------------------------------------

    @property
    def _admitted(self) -> PiSession:
        assert self._pi is not None
        return self._pi

    def _move(self, event: SessionEvent) -> None:
        before, self._life = self._life, next_life(self._life, event)
        if self._life != before and event not in _UNCHANGED_BY:
            self._updated_at = self._clock.now()

    def _call(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a call into Pi in the background until it returns, or the session has no more use for it."""

        async def tracked() -> None:
            try:
                await work()
            finally:
                self._calls.discard(call)

        call = self._background.start(tracked)
        self._calls.add(call)

    def _cancel_calls(self) -> None:
        for call in tuple(self._calls):
            call.cancel()
