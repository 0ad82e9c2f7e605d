"""What is kept until a turn is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.errors import Code
from pi_session_mcp.sessions.clock import Clock
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.sessions.state import TurnState
from pi_session_mcp.sessions.turn import Turn
from tests.support.registries import DONE, Wall

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS: dict[str, Callable[[Turn], None]] = {
    "the word": lambda turn: turn.hear_word(Preflight.STARTED),
    "a sign": lambda turn: turn.hear_sign(),
    "the outcome": lambda turn: turn.hear_outcome(DONE),
}


def handed() -> Turn:
    return Turn(1, "a session", Clock(Wall()))


@pytest.mark.parametrize(
    "order",
    [
        ("the word", "a sign", "the outcome"),
        ("a sign", "the word", "the outcome"),
        ("a sign", "the outcome", "the word"),
        ("the outcome", "the word", "a sign"),
    ],
)
def test_the_outcome_is_kept_in_whatever_order_pi_is_heard(order: tuple[str, ...]) -> None:
    turn = handed()
    for event in order:
        EVENTS[event](turn)

    view = turn.publish()

    assert view.state is TurnState.COMPLETED
    assert view.outcome is not None
    assert view.outcome.answer.text == "done"
    assert not turn.is_pending


def test_an_outcome_that_was_kept_outlives_the_host() -> None:
    turn = handed()
    turn.hear_word(Preflight.STARTED)
    turn.hear_outcome(DONE)
    turn.hear_host_ended(abort_latched=False)

    assert turn.publish().state is TurnState.COMPLETED


def test_a_host_that_ended_before_its_word_leaves_no_turn() -> None:
    turn = handed()
    turn.hear_host_ended(abort_latched=True)
    turn.hear_word(Preflight.STARTED)

    assert turn.state is TurnState.WITHDRAWN
    assert turn.refusal is Code.PI_RUNTIME_UNAVAILABLE
    assert turn.decided.is_set()
    assert not turn.is_pending


def test_a_prompt_in_quarantine_is_pending_until_pi_lets_go() -> None:
    turn = handed()
    turn.hear_word(Preflight.STARTED)
    turn.abandon()
    pending = turn.is_pending
    turn.hear_outcome(DONE)

    assert pending
    assert not turn.is_pending
    assert turn.state is TurnState.WITHDRAWN
