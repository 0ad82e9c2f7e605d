"""The interface between the registry and Pi, which real hosts and the fake in memory both implement. Pure.

`tests/contract/test_pi_sessions.py` holds both to the same behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.config.model import ExecutionProfile
    from pi_session_mcp.sessions.outcome import Outcome
    from pi_session_mcp.terms.selection import Selection


class Preflight(StrEnum):
    """Pi's answer to a prompt. Only `STARTED` makes a turn."""

    STARTED = "started"
    QUEUED = "queued"
    HANDLED = "handled"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """The session to create: its workspace and its profile, each with alias and content."""

    workspace: str
    directory: Path
    profile_alias: str
    profile: ExecutionProfile


class SessionEvents(Protocol):
    """What a Pi session tells its owner. Called on the event loop; must not block or raise.

    Events may come late, so an unknown turn number must be ignored. Nothing is called after the session's `dispose()`
    has returned. `host_ended` is called at most once, and nothing is called after it.
    """

    def activity(self, turn: int) -> None:
        """A tool execution or an assistant message was completed in this turn."""

    def settled(self, turn: int, outcome: Outcome) -> None:
        """The prompt of this turn has resolved in Pi; at most once for a turn, and only after `STARTED`."""

    def foreign_run(self, *, active: bool) -> None:
        """A run that did not begin with a prompt of ours has started or ended."""

    def host_ended(self) -> None:
        """The host has ended, by itself or because it was ended."""


class PiSession(Protocol):
    """One created and verified Pi session."""

    @property
    def selection(self) -> Selection:
        """As read back after creation."""

    @property
    def own_host(self) -> bool:
        """Whether the host holds this session alone."""

    async def prompt(self, turn: int, text: str) -> Preflight:
        """Hand `text` to Pi as plain text and return Pi's word on it.

        `turn` is a number of the owner's, never used twice in a session, which the turn's events carry. If the caller
        is cancelled, the prompt goes on in Pi: the owner aborts it, and `settled` comes for it if it had started.
        Raises `HostGone`.
        """

    async def abort(self) -> None:
        """Abort what runs, and return when it has settled in Pi. One that comes before the run began is latched.

        Raises `HostGone`, or `Refusal(ABORT_FAILED)` when Pi said that the abort failed.
        """

    async def dispose(self) -> None:
        """End the session in Pi. Returns when Pi has let go of it; at most one call has an effect.

        Never raises, because a host that is gone has disposed of the session. It may take for ever, so the caller
        bounds it.
        """

    def end_host(self) -> None:
        """Stop waiting for this session's host. Returns at once; `host_ended` follows when it is gone.

        A host of its own is ended for certain. A shared host retires: no new session goes there, and it is ended once
        its other sessions are closed, at once if there are none.
        """


class PiSessions(Protocol):
    """Where Pi sessions come from."""

    async def create(self, spec: SessionSpec, events: SessionEvents) -> PiSession:
        """Create and verify a session.

        Raises `Refusal` with a code and a stage. Whatever had been created before a failure, or before the caller was
        cancelled, is disposed of exactly once by this side.
        """

    def warm(self) -> None:
        """Prepare a host for the next session. Returns at once. A failure is reported when a session needs the host."""
