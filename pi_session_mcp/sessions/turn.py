"""One prompt and what comes of it, from the hand-over to its last view."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, TypeAlias

import anyio

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.sessions.outcome import Outcome
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.sessions.state import (
    Abandoned,
    HostEnded,
    Published,
    SessionClosed,
    TurnState,
    Word,
    next_turn,
)
from pi_session_mcp.sessions.views import TurnView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from pi_session_mcp.sessions.clock import Clock
    from pi_session_mcp.sessions.state import TurnEvent


OnProgress: TypeAlias = "Callable[[int], Awaitable[None]]"
"""Is told the number of a turn's signs of life: only when it has risen, and at most once a second."""


class Turn:
    """A turn, or a prompt that may become one.

    Whoever waits holds the object, so no later turn can be mistaken for it and nothing can take it away.
    """

    def __init__(self, number: int, session_id: str, clock: Clock) -> None:
        self.number = number
        self.session_id = session_id
        self.state = TurnState.PROVISIONAL
        self.refusal: Code | None = None
        """Why there is no turn, or, once there was one, why its waiters are sent away."""
        self.was_quarantined = False
        self.decided = anyio.Event()
        """Set when the caller need not wait any longer to know whether there is a turn."""
        self.let_go = anyio.Event()
        """Set when Pi holds nothing of the prompt any more, whatever we have told the client."""
        self._clock = clock
        self._id = ""
        self._signs = 0
        self._kept: Outcome | HostEnded | None = None
        self._started_at = self._updated_at = clock.now()
        self._completed_at: datetime | None = None
        self._outcome: Outcome | None = None
        self._ended = anyio.Event()
        self._changed = anyio.Event()

    @property
    def id(self) -> str:
        """The public id. Only a published turn has one."""
        assert self.state.is_published
        return self._id

    @property
    def is_pending(self) -> bool:
        """Whether Pi or a client still waits for something of this prompt."""
        return not (self.state.is_over and self.let_go.is_set())

    def view(self) -> TurnView:
        """The turn as it is now. Only a published turn can be seen."""
        return TurnView(
            turn_id=self.id,
            session_id=self.session_id,
            state=self.state,
            started_at=self._started_at,
            updated_at=self._updated_at,
            completed_at=self._completed_at,
            outcome=self._outcome,
        )

    # --- what happens to it -----------------------------------------------------------------------------------------

    def hear_word(self, word: Preflight) -> None:
        """Pi said what becomes of the prompt."""
        self._apply(Word(word))
        if word is not Preflight.STARTED:
            self.refusal = self.refusal or Code.PROMPT_REJECTED
            self.let_go.set()
        self.decided.set()

    def hear_sign(self) -> None:
        """A tool execution or an assistant message was completed. Before publication the sign is kept."""
        self._signs += 1
        if self.state is TurnState.RUNNING:
            self._updated_at = self._clock.now()
        self._wake()

    def hear_outcome(self, outcome: Outcome) -> None:
        """The prompt resolved in Pi. Before publication the outcome is kept; the first one counts."""
        self._end(outcome)

    def hear_host_ended(self, *, abort_latched: bool) -> None:
        """The host is gone, and with it whatever ran."""
        self._end(HostEnded(abort_latched))
        if self.state is TurnState.WITHDRAWN:
            self.refusal = self.refusal or Code.PI_RUNTIME_UNAVAILABLE
        self.decided.set()

    def abandon(self) -> None:
        """The caller has left. A prompt that is not a turn yet never becomes one."""
        self._apply(Abandoned())
        self.was_quarantined |= self.state is TurnState.QUARANTINED
        self._apply_kept()

    def publish(self) -> TurnView:
        """Make the accepted prompt a turn, with whatever signs and end were kept, and return its first view."""
        self._id = str(uuid.uuid4())
        self._started_at = self._updated_at = self._clock.now()
        self._apply(Published())
        self._apply_kept()
        return self.view()

    def close(self, why: Code) -> None:
        """The session closes: a running turn is aborted, and everybody who still waits is refused with `why`."""
        if self.state.is_over:
            return
        self.refusal = why
        self._apply(SessionClosed())
        self.decided.set()

    def _end(self, event: Outcome | HostEnded) -> None:
        self._kept = self._kept or event
        self._apply(event)
        self.let_go.set()

    def _apply_kept(self) -> None:
        if self._kept is not None:
            self._apply(self._kept)

    def _apply(self, event: TurnEvent) -> None:
        before, self.state = self.state, next_turn(self.state, event)
        if self.state is before or not self.state.is_over:
            return
        if self.state.is_published:
            self._updated_at = self._completed_at = self._clock.now()
            self._outcome = event if isinstance(event, Outcome) else None
        self._ended.set()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # --- waiting for it ---------------------------------------------------------------------------------------------

    async def wait(self, *, timeout_s: float, interval_s: float, on_progress: OnProgress | None) -> TurnView:
        """The turn's view when it is terminal, or after `timeout_s` as it is then.

        `on_progress` is told at most once in `interval_s`; the turn's start is its first sign of life. Raises `Refusal`
        if the session closes or the server stops first.
        """
        with anyio.move_on_after(timeout_s):
            if on_progress is None:
                await self._ended.wait()
            else:
                await self._wait_and_tell(interval_s, on_progress)
        if self.refusal is not None:
            raise Refusal(self.refusal)
        return self.view()

    async def _wait_and_tell(self, interval_s: float, on_progress: OnProgress) -> None:
        told = 0
        while not self._ended.is_set():
            with anyio.move_on_after(interval_s):
                await self._ended.wait()
            if not self._ended.is_set() and told == self._signs + 1:
                await self._changed.wait()
            if not self._ended.is_set():
                told = self._signs + 1
                await on_progress(told)
