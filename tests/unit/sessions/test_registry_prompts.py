"""Handing prompts to Pi, and what becomes of them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.sessions.outcome import outcome_of
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.sessions.session import MAX_TURNS
from pi_session_mcp.sessions.state import SessionState, TurnState
from tests.fakes.pi import Finishes, Manual
from tests.support.registries import DEADLINES, DONE, Asked, World, settle, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pi_session_mcp.sessions.views import SessionView

pytestmark = pytest.mark.anyio


@pytest.fixture
async def at() -> AsyncIterator[World]:
    async with world() as made:
        yield made


async def refusal_of_prompt(at: World, session: SessionView) -> Code:
    with pytest.raises(Refusal) as refused:
        await at.registry.prompt(session.id, "work")
    return refused.value.code


# --- acceptance -----------------------------------------------------------------------------------------------------


async def test_an_accepted_prompt_is_answered_with_the_running_session_and_turn(at: World) -> None:
    view, turn, _ = await at.running()

    assert view.state is SessionState.RUNNING
    assert view.latest_turn_id == turn.turn_id
    assert turn.to_json() == {
        "turnId": turn.turn_id,
        "sessionId": view.id,
        "state": "running",
        "startedAt": turn.to_json()["updatedAt"],
        "updatedAt": turn.to_json()["updatedAt"],
    }
    assert uuid.UUID(turn.turn_id).version == 4
    assert at.pi.prompts == ["work"]


async def test_there_is_no_turn_before_pi_says_started(at: World) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.prompt(session.id, "work"))
        await settle()
        provisional = at.registry.get(session.id)
        at.pi.release("prompt")

    assert provisional.state is SessionState.RUNNING
    assert provisional.latest_turn_id is None
    assert provisional.updated_at == session.updated_at
    assert at.registry.get(session.id).latest_turn_id is not None


@pytest.mark.parametrize("word", [Preflight.QUEUED, Preflight.HANDLED, Preflight.REJECTED])
@pytest.mark.parametrize("earlier", ["idle", "failed"])
async def test_a_prompt_that_pi_does_not_start_leaves_no_trace(at: World, word: Preflight, earlier: str) -> None:
    session, _ = await at.start()
    if earlier == "failed":
        at.pi.plan = Finishes("error")
        await at.registry.prompt(session.id, "fail")
    before = at.registry.get(session.id)
    at.pi.word = word

    code = await refusal_of_prompt(at, session)

    assert code is Code.PROMPT_REJECTED
    assert before.state.value == earlier
    assert at.registry.get(session.id) == before


async def test_a_second_prompt_is_refused_while_a_turn_runs(at: World) -> None:
    session, turn, _ = await at.running()

    assert await refusal_of_prompt(at, session) is Code.SESSION_RUNNING
    assert at.registry.turn(session.id, turn.turn_id) == turn
    assert at.pi.prompts == ["work"]


async def test_a_second_prompt_is_refused_while_the_first_is_provisional(at: World) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Asked().run, lambda: at.registry.prompt(session.id, "work"))
        await settle()

        assert await refusal_of_prompt(at, session) is Code.SESSION_RUNNING
        at.pi.release("prompt")


async def test_a_run_that_no_prompt_began_refuses_prompts_and_is_no_turn(at: World) -> None:
    session, pi = await at.start()
    pi.run_foreign(active=True)

    code = await refusal_of_prompt(at, session)
    seen = at.registry.get(session.id)
    pi.run_foreign(active=False)
    _, turn = await at.registry.prompt(session.id, "work")

    assert code is Code.SESSION_RUNNING
    assert seen == session
    assert turn.state is TurnState.RUNNING


async def test_closing_a_session_refuses_its_provisional_prompt_at_once(at: World) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.prompt(session.id, "work"))
        await settle()
        began = anyio.current_time()
        tasks.start_soon(Asked().run, lambda: at.registry.close(session.id))
        await asked.ended.wait()
        took = anyio.current_time() - began

    assert asked.refusal is Code.UNKNOWN_SESSION
    assert took == 0


async def test_a_closing_session_takes_no_prompt_and_shows_no_turn(at: World) -> None:
    session, turn, _ = await at.running()
    at.pi.hold("dispose")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Asked().run, lambda: at.registry.close(session.id))
        await settle()
        with pytest.raises(Refusal) as refused:
            at.registry.turn(session.id, turn.turn_id)

        assert refused.value.code is Code.UNKNOWN_SESSION
        assert await refusal_of_prompt(at, session) is Code.UNKNOWN_SESSION
        at.pi.release("dispose")


# --- outcome --------------------------------------------------------------------------------------------------------


async def test_a_completed_turn_has_the_trimmed_answer(at: World) -> None:
    session, turn, pi = await at.running()
    pi.finish(outcome_of("stop", aborted=False, text="\n the answer \n"))

    done = at.registry.turn(session.id, turn.turn_id)

    assert done.state is TurnState.COMPLETED
    assert done.to_json() == turn.to_json() | {
        "state": "completed",
        "updatedAt": done.to_json()["completedAt"],
        "completedAt": done.to_json()["completedAt"],
        "assistantText": "the answer",
        "truncated": False,
        "finish": "complete",
    }
    assert at.registry.get(session.id).state is SessionState.IDLE


@pytest.mark.parametrize(
    ("stop_reason", "text", "finish"),
    [
        ("stop", "an answer", "complete"),
        ("length", "an ans", "cut"),
        ("toolUse", "and now", "cut"),
        ("stop", " \n", "no_text"),
        ("length", "", "no_text"),
        ("toolUse", "", "no_text"),
    ],
)
async def test_a_completed_turn_says_how_its_answer_ended(at: World, stop_reason: str, text: str, finish: str) -> None:
    session, turn, pi = await at.running()
    pi.finish(outcome_of(stop_reason, aborted=False, text=text))

    read = at.registry.turn(session.id, turn.turn_id).to_json()

    assert (read["state"], read["finish"], read["assistantText"]) == ("completed", finish, text.strip())


@pytest.mark.parametrize(("stop_reason", "aborted"), [("error", False), ("stop", True)])
async def test_a_turn_that_was_not_completed_does_not_speak_of_an_answer(
    at: World, stop_reason: str, *, aborted: bool
) -> None:
    session, turn, pi = await at.running()
    assert "finish" not in turn.to_json()
    pi.finish(outcome_of(stop_reason, aborted=aborted, text="half"))

    assert not {"finish", "assistantText"} & at.registry.turn(session.id, turn.turn_id).to_json().keys()


async def test_a_failed_turn_has_a_fixed_error_and_no_text_and_the_session_accepts_the_next_prompt(at: World) -> None:
    session, turn, pi = await at.running()
    pi.finish(outcome_of("error", aborted=False, text="a provider's words"))

    failed = at.registry.turn(session.id, turn.turn_id).to_json()
    seen = at.registry.get(session.id).to_json()
    again, _ = await at.registry.prompt(session.id, "more")

    assert failed["error"] == {"code": "turn_failed", "message": "Pi turn failed"}
    assert "assistantText" not in failed
    assert (seen["state"], seen["lastError"]) == ("failed", "Pi turn failed")
    assert again.state is SessionState.RUNNING
    assert "lastError" not in again.to_json()


async def test_signs_of_life_advance_a_running_turn_and_not_one_that_has_ended(at: World) -> None:
    session, turn, pi = await at.running()
    pi.sign()
    once = at.registry.turn(session.id, turn.turn_id)
    pi.sign()
    twice = at.registry.turn(session.id, turn.turn_id)
    pi.finish()
    ended = at.registry.turn(session.id, turn.turn_id)
    pi.events.activity(1)
    pi.events.settled(1, outcome_of("error", aborted=False, text=""))

    assert turn.updated_at < once.updated_at < twice.updated_at < ended.updated_at
    assert at.registry.turn(session.id, turn.turn_id) == ended
    assert at.registry.get(session.id).state is SessionState.IDLE


async def test_an_event_of_an_earlier_turn_does_not_touch_the_present_one(at: World) -> None:
    session, _, pi = await at.running()
    pi.finish()
    _, second = await at.registry.prompt(session.id, "more")

    pi.events.activity(1)
    pi.events.settled(1, DONE)

    assert at.registry.turn(session.id, second.turn_id) == second


async def test_what_happens_before_publication_is_kept_and_applied_to_the_turn(at: World) -> None:
    at.pi.plan = Finishes(text="fast", signs=2)
    session, _ = await at.start()

    view, turn = await at.registry.prompt(session.id, "work")

    assert turn.state is TurnState.COMPLETED
    assert turn.outcome is not None
    assert turn.outcome.answer.text == "fast"
    assert (view.state, view.latest_turn_id) == (SessionState.IDLE, turn.turn_id)


async def test_a_host_that_dies_between_acceptance_and_publication_makes_a_failed_turn(at: World) -> None:
    session, pi = await at.start()
    at.pi.hold("prompt")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.prompt(session.id, "work"))
        await settle()
        at.pi.release("prompt")
        pi.host.die()

    seen = at.registry.get(session.id)
    assert seen.to_json()["lastError"] == "Pi host ended"
    if seen.latest_turn_id is None:
        assert asked.refusal is Code.PI_RUNTIME_UNAVAILABLE
    else:
        assert at.registry.turn(session.id, seen.latest_turn_id).state is TurnState.FAILED


@pytest.mark.parametrize("count", [MAX_TURNS, MAX_TURNS + 1])
async def test_a_session_keeps_its_latest_twenty_turns(at: World, count: int) -> None:
    at.pi.plan = Finishes()
    session, _ = await at.start()
    turns = [(await at.registry.prompt(session.id, "work"))[1] for _ in range(count)]

    assert MAX_TURNS == 20
    for turn in turns[-20:]:
        assert at.registry.turn(session.id, turn.turn_id) == turn
    for turn in turns[:-20]:
        with pytest.raises(Refusal) as refused:
            at.registry.turn(session.id, turn.turn_id)
        assert refused.value.code is Code.UNKNOWN_TURN


async def test_a_turn_of_another_session_is_unknown(at: World) -> None:
    _, turn, _ = await at.running()
    other, _ = await at.start()

    with pytest.raises(Refusal) as refused:
        at.registry.turn(other.id, turn.turn_id)

    assert refused.value.code is Code.UNKNOWN_TURN


@pytest.mark.parametrize("own_host", [True, False])
async def test_a_host_that_dies_fails_the_turns_of_its_sessions(at: World, *, own_host: bool) -> None:
    at.pi.own_hosts = own_host
    session, turn, pi = await at.running()
    pi.host.die()
    fresh, _ = await at.start()

    assert at.registry.turn(session.id, turn.turn_id).state is TurnState.FAILED
    assert at.registry.get(session.id).to_json()["lastError"] == "Pi host ended"
    assert await refusal_of_prompt(at, session) is Code.PI_RUNTIME_UNAVAILABLE
    assert at.registry.get(fresh.id).state is SessionState.IDLE


async def test_a_prompt_that_finds_the_host_gone_fails_the_session(at: World) -> None:
    session, pi = await at.start()
    pi.host.alive = False

    assert await refusal_of_prompt(at, session) is Code.PI_RUNTIME_UNAVAILABLE
    assert at.registry.get(session.id).to_json()["lastError"] == "Pi host ended"
    assert at.registry.get(session.id).latest_turn_id is None


# --- quarantine -----------------------------------------------------------------------------------------------------


async def test_no_word_within_the_deadline_is_a_timeout_and_the_session_comes_back_when_pi_has_let_go(
    at: World,
) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt", "abort")
    began = anyio.current_time()

    code = await refusal_of_prompt(at, session)
    took = anyio.current_time() - began
    await settle()
    states = [at.registry.get(session.id).state]
    codes = [await refusal_of_prompt(at, session)]
    at.pi.release("abort")
    await settle()
    codes.append(await refusal_of_prompt(at, session))
    at.pi.release("prompt")
    await settle()

    assert code is Code.PROMPT_TIMEOUT
    assert took == pytest.approx(DEADLINES.preflight_s)
    assert states == [SessionState.RUNNING]
    assert codes == [Code.SESSION_RUNNING, Code.SESSION_RUNNING]
    assert at.registry.get(session.id) == session


async def test_a_prompt_that_starts_after_its_deadline_is_never_a_turn(at: World) -> None:
    session, pi = await at.start()
    at.pi.hold("prompt", "abort")
    await refusal_of_prompt(at, session)
    at.pi.release("prompt")
    await settle()
    running_in_pi = pi.running
    at.pi.release("abort")
    await settle()

    assert running_in_pi == 1
    assert at.registry.get(session.id) == session
    _, turn = await at.registry.prompt(session.id, "work")
    assert turn.state is TurnState.RUNNING


@pytest.mark.parametrize("own_host", [True, False])
async def test_a_quarantine_that_does_not_end_gives_the_host_up(at: World, *, own_host: bool) -> None:
    at.pi.own_hosts = own_host
    session, _ = await at.start()
    other, _ = await at.start()
    at.pi.hold("prompt", "abort")
    await refusal_of_prompt(at, session)
    await anyio.sleep(DEADLINES.abort_s + 1)

    assert await refusal_of_prompt(at, session) is Code.PI_RUNTIME_UNAVAILABLE
    assert at.registry.get(other.id).state is SessionState.IDLE
    assert at.registry.get(session.id).state is (SessionState.FAILED if own_host else SessionState.RUNNING)


async def test_a_quarantine_whose_abort_fails_waits_for_the_normal_end(at: World) -> None:
    session, pi = await at.start()
    at.pi.hold("prompt", "abort")
    await refusal_of_prompt(at, session)
    await settle()
    at.pi.release("prompt")
    at.pi.release("abort", Refusal(Code.ABORT_FAILED))
    await settle()
    code = await refusal_of_prompt(at, session)
    pi.finish()
    await settle()

    assert code is Code.SESSION_RUNNING
    assert at.registry.get(session.id) == session
    assert pi.host.alive


async def test_a_quarantine_lasts_until_the_abort_has_settled_too(at: World) -> None:
    session, _ = await at.start()
    at.pi.word = Preflight.REJECTED
    at.pi.hold("prompt", "abort")
    await refusal_of_prompt(at, session)
    await settle()
    at.pi.release("prompt")
    await settle()
    state, code = at.registry.get(session.id).state, await refusal_of_prompt(at, session)
    at.pi.release("abort")
    await settle()

    assert (state, code) == (SessionState.RUNNING, Code.SESSION_RUNNING)
    assert at.registry.get(session.id) == session


async def test_a_quarantine_whose_abort_is_a_defect_gives_the_host_up_at_once(at: World) -> None:
    session, pi = await at.start()
    at.pi.hold("prompt", "abort")
    await refusal_of_prompt(at, session)
    await settle()
    at.pi.release("abort", RuntimeError("a defect"))
    await settle()

    assert not pi.host.alive
    assert await refusal_of_prompt(at, session) is Code.PI_RUNTIME_UNAVAILABLE


@pytest.mark.parametrize("gap", range(8))
async def test_a_rejected_caller_who_is_told_late_does_not_disturb_the_next_prompt(at: World, gap: int) -> None:
    session, _ = await at.start()
    at.pi.word = Preflight.REJECTED
    at.pi.hold("prompt")
    first, second = Asked(), Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.run, lambda: at.registry.prompt(session.id, "first"))
        await settle()
        at.pi.release("prompt")
        at.pi.word = Preflight.STARTED
        for _ in range(gap):
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(second.run, lambda: at.registry.prompt(session.id, "second"))

    accepted = second.refusal is None
    assert first.refusal is Code.PROMPT_REJECTED
    assert accepted or second.refusal is Code.SESSION_RUNNING
    assert (at.registry.get(session.id).state is SessionState.RUNNING) == accepted


async def test_closing_leaves_no_call_waiting_for_pi(at: World) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt", "abort")
    await refusal_of_prompt(at, session)

    await at.registry.close(session.id)
    await settle()

    assert at.registry.is_idle


async def test_a_caller_who_leaves_before_publication_leaves_no_turn(at: World) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.prompt(session.id, "work"))
        await settle()
        asked.scope.cancel()
        await asked.ended.wait()
        at.pi.release("prompt")
        await settle()

    assert asked.was_cancelled
    assert [call.kind for call in at.pi.calls] == ["create", "prompt", "abort"]
    assert at.registry.get(session.id) == session


async def test_a_caller_who_leaves_after_publication_leaves_the_turn_running(at: World) -> None:
    session, _ = await at.start()
    published = anyio.Event()

    async def prompt_and_wait() -> None:
        _, turn = await at.registry.prompt(session.id, "work")
        published.set()
        await at.registry.wait_turn(session.id, turn.turn_id, timeout_s=50)

    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, prompt_and_wait)
        await published.wait()
        asked.scope.cancel()

    assert asked.was_cancelled
    assert at.registry.get(session.id).state is SessionState.RUNNING


async def test_a_defect_while_handing_over_is_an_internal_error_and_quarantines_the_prompt(at: World) -> None:
    session, pi = await at.start()
    at.pi.hold("prompt")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.prompt(session.id, "work"))
        await settle()
        at.pi.release("prompt", RuntimeError("a defect"))
        await asked.ended.wait()
    code = await refusal_of_prompt(at, session)
    await anyio.sleep(DEADLINES.abort_s + 1)

    assert asked.refusal is Code.INTERNAL_ERROR
    assert code is Code.SESSION_RUNNING
    assert not pi.host.alive
    assert len(at.diagnostics) == 1


# --- waiting --------------------------------------------------------------------------------------------------------


async def test_waiting_ends_when_the_turn_does(at: World) -> None:
    session, turn, pi = await at.running()
    asked = [Asked() for _ in range(3)]
    async with anyio.create_task_group() as tasks:
        for one in asked:
            tasks.start_soon(one.run, lambda: at.registry.wait_turn(session.id, turn.turn_id, timeout_s=50))
        await settle()
        pi.finish(DONE)

    done = at.registry.turn(session.id, turn.turn_id)
    assert [one.result for one in asked] == [done] * 3
    assert anyio.current_time() < 1


async def test_running_out_of_time_shows_the_running_turn(at: World) -> None:
    session, turn, _ = await at.running()

    assert await at.registry.wait_turn(session.id, turn.turn_id, timeout_s=2) == turn
    assert await at.registry.wait_turn(session.id, turn.turn_id, timeout_s=0) == turn


async def test_a_waiter_gets_its_own_turn_even_when_twenty_later_ones_have_removed_it(at: World) -> None:
    session, first, pi = await at.running()
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.wait_turn(session.id, first.turn_id, timeout_s=50))
        await settle()
        pi.finish(outcome_of("stop", aborted=False, text="the first"))
        at.pi.plan = Finishes("error")
        for _ in range(MAX_TURNS):
            await at.registry.prompt(session.id, "more")
        at.pi.plan = Manual()

    assert isinstance(asked.result, type(first))
    assert asked.result.turn_id == first.turn_id
    assert asked.result.state is TurnState.COMPLETED
    with pytest.raises(Refusal):
        at.registry.turn(session.id, first.turn_id)


async def test_closing_the_session_ends_waiters_at_once(at: World) -> None:
    session, turn, _ = await at.running()
    at.pi.hold("abort", "dispose")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.wait_turn(session.id, turn.turn_id, timeout_s=50))
        await settle()
        tasks.start_soon(Asked().run, lambda: at.registry.close(session.id))
        await asked.ended.wait()
        ended_at = anyio.current_time()

    assert asked.refusal is Code.UNKNOWN_SESSION
    assert ended_at < 1


async def test_a_waiter_whose_turn_ended_before_the_close_gets_the_turn(at: World) -> None:
    session, turn, pi = await at.running()
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.wait_turn(session.id, turn.turn_id, timeout_s=50))
        await settle()
        # The close comes first on the loop, but after the end of the turn.
        tasks.start_soon(Asked().run, lambda: at.registry.close(session.id))
        pi.finish()

    assert isinstance(asked.result, type(turn))
    assert asked.result.state is TurnState.COMPLETED


# --- progress -------------------------------------------------------------------------------------------------------


class Told:
    """What a waiter was told, and when."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.times: list[float] = []

    async def __call__(self, count: int) -> None:
        self.counts.append(count)
        self.times.append(anyio.current_time())


async def test_progress_is_told_at_most_once_a_second_with_a_rising_count(at: World) -> None:
    session, turn, pi = await at.running()
    told, began = Told(), anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: at.registry.wait_turn(session.id, turn.turn_id, timeout_s=50, on_progress=told))
        for _ in range(40):
            await anyio.sleep(0.1)
            pi.sign()
        pi.finish()

    assert told.counts == sorted(set(told.counts))
    assert told.times[0] - began == pytest.approx(DEADLINES.progress_interval_s)
    assert all(later - earlier >= 0.999 for earlier, later in zip(told.times, told.times[1:], strict=False))
    assert len(told.counts) in {3, 4}


async def test_a_turn_that_has_just_started_gives_one_sign_of_life_and_a_silent_one_no_more(at: World) -> None:
    session, turn, pi = await at.running()
    told = Told()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: at.registry.wait_turn(session.id, turn.turn_id, timeout_s=50, on_progress=told))
        await anyio.sleep(10)
        silent = list(told.counts)
        pi.sign()
        await settle()
        after_a_sign = list(told.counts)
        pi.finish()

    assert silent == [1]
    assert after_a_sign == [1, 2]


async def test_a_turn_that_ends_within_a_second_tells_no_progress(at: World) -> None:
    session, turn, pi = await at.running()
    told = Told()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: at.registry.wait_turn(session.id, turn.turn_id, timeout_s=50, on_progress=told))
        await anyio.sleep(0.9)
        pi.sign()
        pi.finish()

    assert told.counts == []
