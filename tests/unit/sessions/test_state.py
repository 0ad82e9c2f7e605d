"""The two tables of lives."""

from __future__ import annotations

import itertools

import pytest

from pi_session_mcp.sessions.outcome import outcome_of
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.sessions.state import (
    Abandoned,
    HostEnded,
    LastError,
    Life,
    Published,
    SessionClosed,
    SessionEvent,
    SessionState,
    TurnEvent,
    TurnState,
    Word,
    next_life,
    next_turn,
    turn_end,
)

STOPPED = outcome_of("stop", aborted=False, text="")
TURN_EVENTS: list[TurnEvent] = [
    *(Word(word) for word in Preflight),
    Published(),
    Abandoned(),
    STOPPED,
    outcome_of("error", aborted=False, text=""),
    outcome_of("stop", aborted=True, text=""),
    HostEnded(abort_latched=False),
    HostEnded(abort_latched=True),
    SessionClosed(),
]


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("stop", TurnState.COMPLETED),
        ("length", TurnState.COMPLETED),
        ("toolUse", TurnState.COMPLETED),
        ("aborted", TurnState.ABORTED),
        ("error", TurnState.FAILED),
        ("pending", TurnState.FAILED),
        ("deferred", TurnState.FAILED),
        (None, TurnState.FAILED),
        ("", TurnState.FAILED),
        ("Stop", TurnState.FAILED),
        ("something new", TurnState.FAILED),
    ],
)
def test_a_turn_ends_by_its_stop_reason_and_an_unknown_one_is_a_failure(reason: str | None, end: TurnState) -> None:
    assert turn_end(outcome_of(reason, aborted=False, text="")) is end


@pytest.mark.parametrize("reason", ["stop", "error", None])
def test_a_latched_abort_outweighs_the_stop_reason(reason: str | None) -> None:
    assert turn_end(outcome_of(reason, aborted=True, text="")) is TurnState.ABORTED


@pytest.mark.parametrize("state", [state for state in TurnState if state.is_over])
@pytest.mark.parametrize("event", TURN_EVENTS)
def test_nothing_changes_what_is_over(state: TurnState, event: TurnEvent) -> None:
    assert next_turn(state, event) is state


def test_no_turn_is_published_unless_pi_said_started_before() -> None:
    for events in itertools.permutations(TURN_EVENTS, 4):
        state, started = TurnState.PROVISIONAL, False
        for event in events:
            state = next_turn(state, event)
            started |= event == Word(Preflight.STARTED)
            assert started or not state.is_published


@pytest.mark.parametrize("word", [word for word in Preflight if word is not Preflight.STARTED])
def test_any_other_word_makes_no_turn(word: Preflight) -> None:
    assert next_turn(TurnState.PROVISIONAL, Word(word)) is TurnState.WITHDRAWN
    assert next_turn(TurnState.QUARANTINED, Word(word)) is TurnState.WITHDRAWN


def test_what_ends_an_accepted_prompt_waits_for_its_publication() -> None:
    assert next_turn(TurnState.ACCEPTED, STOPPED) is TurnState.ACCEPTED
    assert next_turn(TurnState.ACCEPTED, HostEnded(abort_latched=False)) is TurnState.ACCEPTED


def test_an_abandoned_prompt_that_starts_stays_in_quarantine_until_it_settles() -> None:
    state = next_turn(TurnState.PROVISIONAL, Abandoned())
    state = next_turn(state, Word(Preflight.STARTED))

    assert state is TurnState.QUARANTINED
    assert next_turn(state, Published()) is TurnState.QUARANTINED
    assert next_turn(state, STOPPED) is TurnState.WITHDRAWN


@pytest.mark.parametrize(("latched", "end"), [(True, TurnState.ABORTED), (False, TurnState.FAILED)])
def test_a_host_that_ends_fails_its_running_turn_unless_an_abort_was_latched(latched: bool, end: TurnState) -> None:  # noqa: FBT001 - a test's parameter
    assert next_turn(TurnState.RUNNING, HostEnded(abort_latched=latched)) is end


@pytest.mark.parametrize("before", [Life(), Life(SessionState.FAILED, LastError.TURN_FAILED)])
def test_a_prompt_that_is_no_turn_brings_the_earlier_life_back(before: Life) -> None:
    handed = next_life(before, SessionEvent.PROMPT_HANDED)

    assert handed.state is SessionState.RUNNING
    assert next_life(handed, SessionEvent.PROMPT_WITHDRAWN) == before


@pytest.mark.parametrize("before", [Life(), Life(SessionState.FAILED, LastError.TURN_FAILED)])
def test_a_published_turn_is_never_withdrawn(before: Life) -> None:
    handed = next_life(before, SessionEvent.PROMPT_HANDED)
    published = next_life(handed, SessionEvent.TURN_PUBLISHED)

    assert next_life(published, SessionEvent.PROMPT_WITHDRAWN) == published


@pytest.mark.parametrize("event", list(SessionEvent))
def test_a_closed_session_stays_closed(event: SessionEvent) -> None:
    closed = Life(SessionState.CLOSED)

    assert next_life(closed, event) == closed


@pytest.mark.parametrize("event", [event for event in SessionEvent if event is not SessionEvent.CLOSE_ENDED])
def test_a_closing_session_can_only_become_closed(event: SessionEvent) -> None:
    closing = Life(SessionState.CLOSING)

    assert next_life(closing, event) == closing
    assert next_life(closing, SessionEvent.CLOSE_ENDED) == Life(SessionState.CLOSED)


@pytest.mark.parametrize(
    "event",
    [SessionEvent.PROMPT_HANDED, SessionEvent.TURN_PUBLISHED, SessionEvent.TURN_ENDED, SessionEvent.TURN_FAILED],
)
def test_a_session_whose_host_ended_only_closes(event: SessionEvent) -> None:
    lost = next_life(Life(), SessionEvent.HOST_ENDED)

    assert lost == Life(SessionState.FAILED, LastError.HOST_ENDED)
    assert next_life(lost, event) == lost
