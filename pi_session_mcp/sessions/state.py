"""The life of a session and of a turn, as two tables. Pure.

Everything else in this package reports what happened; only these tables say what follows from it. What a table does
not name changes nothing, so an event that comes late, twice or from nowhere is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from pi_session_mcp.sessions.outcome import Outcome
from pi_session_mcp.sessions.ports import Preflight


class SessionState(StrEnum):
    """What a client sees of a session."""

    IDLE = "idle"
    RUNNING = "running"
    FAILED = "failed"
    CLOSING = "closing"
    CLOSED = "closed"


class LastError(StrEnum):
    """Why a session is `failed`."""

    TURN_FAILED = "Pi turn failed"
    HOST_ENDED = "Pi host ended"


class TurnState(StrEnum):
    """Where a prompt is. The first four are never shown: there is no turn yet, or there never will be one."""

    PROVISIONAL = "provisional"
    """Handed to Pi, which has not yet said what becomes of it."""
    ACCEPTED = "accepted"
    """Pi said `started`; whoever asked has not yet been given the turn. What ends it is kept until then."""
    QUARANTINED = "quarantined"
    """Its caller has left. It is being aborted and will never be a turn."""
    WITHDRAWN = "withdrawn"
    """Over without having been a turn."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow."""
        return self in _OVER

    @property
    def is_published(self) -> bool:
        """Whether a client may see it: there was a preflight that said `started`."""
        return self not in _UNPUBLISHED


_OVER: Final = frozenset({TurnState.WITHDRAWN, TurnState.COMPLETED, TurnState.FAILED, TurnState.ABORTED})
_UNPUBLISHED: Final = frozenset({TurnState.PROVISIONAL, TurnState.ACCEPTED, TurnState.QUARANTINED, TurnState.WITHDRAWN})


# --- the life of a turn ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """Pi's preflight word."""

    preflight: Preflight


@dataclass(frozen=True, slots=True)
class Published:
    """Whoever asked is being given the turn."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """No caller waits any more: the time for the preflight has passed, or the caller has left."""


@dataclass(frozen=True, slots=True)
class HostEnded:
    """The host is gone; `abort_latched` says that an abort was under way."""

    abort_latched: bool


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The session began to close."""


TurnEvent: TypeAlias = Word | Published | Abandoned | Outcome | HostEnded | SessionClosed
"""What can happen to a prompt. An `Outcome` says that it has resolved in Pi."""


def next_turn(state: TurnState, event: TurnEvent) -> TurnState:  # noqa: C901 - one table, one line a row
    """What becomes of a prompt in `state` when `event` happens."""
    match state, event:
        case TurnState.PROVISIONAL, Word(Preflight.STARTED):
            return TurnState.ACCEPTED
        case TurnState.PROVISIONAL | TurnState.QUARANTINED, Word(word) if word is not Preflight.STARTED:
            return TurnState.WITHDRAWN
        case TurnState.ACCEPTED, Published():
            return TurnState.RUNNING
        case TurnState.PROVISIONAL | TurnState.ACCEPTED, Abandoned():
            return TurnState.QUARANTINED
        case TurnState.QUARANTINED, Outcome():
            return TurnState.WITHDRAWN
        case TurnState.PROVISIONAL | TurnState.QUARANTINED, HostEnded():
            return TurnState.WITHDRAWN
        case TurnState.PROVISIONAL | TurnState.ACCEPTED | TurnState.QUARANTINED, SessionClosed():
            return TurnState.WITHDRAWN
        case TurnState.RUNNING, Outcome() as outcome:
            return turn_end(outcome)
        case TurnState.RUNNING, HostEnded(abort_latched):
            return TurnState.ABORTED if abort_latched else TurnState.FAILED
        case TurnState.RUNNING, SessionClosed():
            return TurnState.ABORTED
        case _:
            return state


def turn_end(outcome: Outcome) -> TurnState:
    """The terminal state of a turn. A stop reason that is missing, unsettled or unknown is a failure."""
    if outcome.aborted:
        return TurnState.ABORTED
    match outcome.stop_reason:
        case "stop" | "length" | "toolUse":
            return TurnState.COMPLETED
        case "aborted":
            return TurnState.ABORTED
        case "error" | "pending" | "deferred" | None:
            return TurnState.FAILED
        case _:
            return TurnState.FAILED


# --- the life of a session ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Life:
    """Where a session is. `before` is what comes back if the prompt now under way never becomes a turn."""

    state: SessionState = SessionState.IDLE
    last_error: LastError | None = None
    before: Life | None = None


class SessionEvent(StrEnum):
    """What can happen to a session."""

    PROMPT_HANDED = "prompt_handed"
    PROMPT_WITHDRAWN = "prompt_withdrawn"
    TURN_PUBLISHED = "turn_published"
    TURN_ENDED = "turn_ended"
    TURN_FAILED = "turn_failed"
    HOST_ENDED = "host_ended"
    CLOSE_BEGAN = "close_began"
    CLOSE_ENDED = "close_ended"


def next_life(life: Life, event: SessionEvent) -> Life:  # noqa: C901 - one table, one line a row
    """What becomes of a session when `event` happens."""
    match life.state, event:
        case SessionState.CLOSED, _:
            return life
        case _, SessionEvent.CLOSE_ENDED:
            return Life(SessionState.CLOSED)
        case SessionState.CLOSING, _:
            return life
        case _, SessionEvent.CLOSE_BEGAN:
            return Life(SessionState.CLOSING)
        case _, SessionEvent.HOST_ENDED:
            return Life(SessionState.FAILED, LastError.HOST_ENDED)
        case _ if life.last_error is LastError.HOST_ENDED:
            return life
        case SessionState.IDLE | SessionState.FAILED, SessionEvent.PROMPT_HANDED:
            return Life(SessionState.RUNNING, before=life)
        case SessionState.RUNNING, SessionEvent.PROMPT_WITHDRAWN:
            return life.before or life
        case SessionState.RUNNING, SessionEvent.TURN_PUBLISHED:
            return Life(SessionState.RUNNING)
        case SessionState.RUNNING, SessionEvent.TURN_ENDED:
            return Life(SessionState.IDLE)
        case SessionState.RUNNING, SessionEvent.TURN_FAILED:
            return Life(SessionState.FAILED, LastError.TURN_FAILED)
        case _:
            return life
