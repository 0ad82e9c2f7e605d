"""What a client sees of sessions and turns: exactly these fields. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_session_mcp.sessions.clock import timestamp
from pi_session_mcp.sessions.state import SessionState, TurnState

if TYPE_CHECKING:
    from datetime import datetime

    from pi_session_mcp.sessions.outcome import Outcome
    from pi_session_mcp.sessions.state import LastError
    from pi_session_mcp.terms.selection import Selection

TURN_FAILED: Final = {"code": "turn_failed", "message": "Pi turn failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session at one moment. `selection` is as read back from Pi."""

    id: str
    workspace: str
    execution_profile: str
    permission_profile: str
    selection: Selection
    state: SessionState
    created_at: datetime
    updated_at: datetime
    latest_turn_id: str | None = None
    last_error: LastError | None = None

    def to_json(self) -> dict[str, object]:
        """The fields of the tool contract."""
        fields: dict[str, object] = {
            "id": self.id,
            "workspace": self.workspace,
            "executionProfile": self.execution_profile,
            "profile": self.permission_profile,
            **self.selection.to_json(),
            "state": self.state.value,
            "createdAt": timestamp(self.created_at),
            "updatedAt": timestamp(self.updated_at),
        }
        if self.latest_turn_id is not None:
            fields["latestTurnId"] = self.latest_turn_id
        if self.state is SessionState.FAILED and self.last_error is not None:
            fields["lastError"] = self.last_error.value
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """A published turn at one moment. `completed_at` is set when it is over, `outcome` when Pi has said how."""

    turn_id: str
    session_id: str
    state: TurnState
    started_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    outcome: Outcome | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether this view is the turn's last."""
        return self.state.is_over

    def to_json(self) -> dict[str, object]:
        """The fields of the tool contract."""
        fields: dict[str, object] = {
            "turnId": self.turn_id,
            "sessionId": self.session_id,
            "state": self.state.value,
            "startedAt": timestamp(self.started_at),
            "updatedAt": timestamp(self.updated_at),
        }
        if self.completed_at is not None:
            fields["completedAt"] = timestamp(self.completed_at)
        if self.state is TurnState.FAILED:
            fields["error"] = dict(TURN_FAILED)
        if self.state is TurnState.COMPLETED and self.outcome is not None:
            fields["assistantText"] = self.outcome.answer.text
            fields["truncated"] = self.outcome.answer.truncated
            fields["finish"] = self.outcome.finish.value
        return fields
