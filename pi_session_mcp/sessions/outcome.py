"""How a turn ended in Pi: one value from the host's event to the client's view. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pi_session_mcp.sessions.answer import answer_from

if TYPE_CHECKING:
    from pi_session_mcp.sessions.answer import Answer


class Finish(StrEnum):
    """How the answer of a completed turn ended."""

    COMPLETE = "complete"
    """The model ended its answer itself."""
    CUT = "cut"
    """Something else ended it, so what is there is part of an answer."""
    NO_TEXT = "no_text"
    """There is no answer, whatever ended the turn."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a turn in Pi.

    `stop_reason` is that of the last assistant message between the turn's preflight and its end, `None` if there was
    no message. `aborted` says that an abort had been asked for. `answer` is the text of the last of these messages that
    has some and that Pi did not take back, or of the last one if it failed or was aborted.
    """

    stop_reason: str | None
    aborted: bool
    answer: Answer

    @property
    def finish(self) -> Finish:
        """How the answer ended, if the turn completed."""
        if not self.answer.text:
            return Finish.NO_TEXT
        return Finish.COMPLETE if self.stop_reason == "stop" else Finish.CUT


def outcome_of(stop_reason: str | None, *, aborted: bool, text: str) -> Outcome:
    """The outcome of a turn whose text is `text`, as the host has it."""
    return Outcome(stop_reason, aborted, answer_from(text))
