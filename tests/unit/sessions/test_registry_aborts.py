"""Aborting what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.errors import Code, HostGone, Refusal
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.sessions.state import SessionState, TurnState
from pi_session_mcp.sessions.views import SessionView
from tests.fakes.pi import abort_failure
from tests.support.registries import DEADLINES, DONE, Asked, World, settle, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


@pytest.fixture
async def at() -> AsyncIterator[World]:
    async with world() as made:
        yield made


def state_of(at: World, session_id: str, turn_id: str) -> TurnState:
    return at.registry.turn(session_id, turn_id).state


async def prompt_code(at: World, session_id: str) -> Code:
    with pytest.raises(Refusal) as refused:
        await at.registry.prompt(session_id, "work")
    return refused.value.code


async def test_aborting_an_idle_session_changes_nothing(at: World) -> None:
    session, _ = await at.start()

    assert await at.registry.abort(session.id) == session
    assert [call.kind for call in at.pi.calls] == ["create"]


async def test_an_abort_returns_when_the_turn_is_aborted_and_the_session_idle(at: World) -> None:
    session, turn, _ = await at.running()

    view = await at.registry.abort(session.id)

    assert view.state is SessionState.IDLE
    aborted = at.registry.turn(session.id, turn.turn_id).to_json()
    assert aborted["state"] == "aborted"
    assert set(aborted) == {"turnId", "sessionId", "state", "startedAt", "updatedAt", "completedAt"}


async def test_callers_who_abort_at_the_same_time_share_one_attempt(at: World) -> None:
    session, _, _ = await at.running()
    at.pi.hold("abort")
    asked = [Asked() for _ in range(3)]
    async with anyio.create_task_group() as tasks:
        for one in asked:
            tasks.start_soon(one.run, lambda: at.registry.abort(session.id))
        await settle()
        at.pi.release("abort")

    assert [call.kind for call in at.pi.calls].count("abort") == 1
    assert [one.result for one in asked] == [at.registry.get(session.id)] * 3


async def test_a_turn_that_ends_normally_during_the_abort_keeps_its_end(at: World) -> None:
    session, turn, pi = await at.running()
    at.pi.hold("abort")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.abort(session.id))
        await settle()
        pi.finish(DONE)
        code = await prompt_code(at, session.id)
        at.pi.release("abort")

    assert state_of(at, session.id, turn.turn_id) is TurnState.COMPLETED
    assert code is Code.SESSION_RUNNING
    assert isinstance(asked.result, SessionView)
    assert asked.result.state is SessionState.IDLE


async def test_an_abort_that_pi_says_failed_leaves_the_turn_running_and_can_be_tried_again(at: World) -> None:
    session, turn, pi = await at.running()
    at.pi.hold("abort")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.abort(session.id))
        await settle()
        at.pi.release("abort", abort_failure())
    seen = state_of(at, session.id, turn.turn_id)
    again = await at.registry.abort(session.id)

    assert asked.refusal is Code.ABORT_FAILED
    assert seen is TurnState.RUNNING
    assert again.state is SessionState.IDLE
    assert pi.host.alive


async def test_a_failed_abort_is_no_failure_when_the_turn_ended_by_itself(at: World) -> None:
    session, turn, pi = await at.running()
    at.pi.hold("abort")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.abort(session.id))
        await settle()
        pi.finish(DONE)
        at.pi.release("abort", abort_failure())

    assert asked.refusal is None
    assert state_of(at, session.id, turn.turn_id) is TurnState.COMPLETED


async def test_a_defect_during_the_abort_is_reported_and_answered_as_failed(at: World) -> None:
    session, turn, _ = await at.running()
    at.pi.hold("abort")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.abort(session.id))
        await settle()
        at.pi.release("abort", RuntimeError("a defect"))

    assert asked.refusal is Code.ABORT_FAILED
    assert state_of(at, session.id, turn.turn_id) is TurnState.RUNNING
    assert len(at.diagnostics) == 1


async def test_an_abort_past_its_deadline_on_an_own_host_ends_the_host_and_the_turn_is_aborted(at: World) -> None:
    at.pi.own_hosts = True
    session, turn, pi = await at.running()
    at.pi.hold("abort")
    began = anyio.current_time()
    with pytest.raises(Refusal) as refused:
        await at.registry.abort(session.id)
    took = anyio.current_time() - began
    await settle()

    assert refused.value.code is Code.ABORT_TIMEOUT
    assert took == pytest.approx(DEADLINES.abort_s)
    assert not pi.host.alive
    assert state_of(at, session.id, turn.turn_id) is TurnState.ABORTED
    assert at.registry.get(session.id).to_json()["lastError"] == "Pi host ended"
    assert await prompt_code(at, session.id) is Code.PI_RUNTIME_UNAVAILABLE


async def test_a_later_caller_of_an_abort_that_ends_the_host_gets_the_failed_session(at: World) -> None:
    at.pi.own_hosts = True
    session, _, _ = await at.running()
    at.pi.hold("abort")
    first, second = Asked(), Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.run, lambda: at.registry.abort(session.id))
        await anyio.sleep(DEADLINES.abort_s / 2)
        tasks.start_soon(second.run, lambda: at.registry.abort(session.id))

    assert first.refusal is Code.ABORT_TIMEOUT
    assert isinstance(second.result, SessionView)
    assert second.result.state is SessionState.FAILED


async def test_an_abort_past_its_deadline_on_the_shared_host_retires_it(at: World) -> None:
    session, turn, pi = await at.running()
    other, _ = await at.start()
    at.pi.hold("abort")
    with pytest.raises(Refusal) as refused:
        await at.registry.abort(session.id)
    await settle()
    seen = state_of(at, session.id, turn.turn_id)
    _, fresh = await at.start()

    assert refused.value.code is Code.ABORT_TIMEOUT
    assert seen is TurnState.RUNNING
    assert fresh.host is not pi.host
    assert await prompt_code(at, session.id) is Code.PI_RUNTIME_UNAVAILABLE
    _, others_turn = await at.registry.prompt(other.id, "goes on")
    assert others_turn.state is TurnState.RUNNING
    at.pi.held.clear()


async def test_the_last_other_session_to_close_ends_a_retiring_host_and_the_stuck_turn_is_aborted(at: World) -> None:
    session, turn, pi = await at.running()
    other, _ = await at.start()
    at.pi.hold("abort")
    with pytest.raises(Refusal):
        await at.registry.abort(session.id)
    await at.registry.close(other.id)
    await settle()

    assert not pi.host.alive
    assert state_of(at, session.id, turn.turn_id) is TurnState.ABORTED
    assert at.registry.get(session.id).to_json()["lastError"] == "Pi host ended"


async def test_a_session_on_a_retiring_host_closes_without_waiting_for_its_abort_again(at: World) -> None:
    session, _, _ = await at.running()
    await at.start()
    at.pi.hold("abort")
    with pytest.raises(Refusal):
        await at.registry.abort(session.id)
    began = anyio.current_time()

    await at.registry.close(session.id)

    assert anyio.current_time() == began


async def test_an_abort_before_the_run_began_aborts_it_when_it_begins(at: World) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt")
    prompted, aborted = Asked(), Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompted.run, lambda: at.registry.prompt(session.id, "work"))
        await settle()
        tasks.start_soon(aborted.run, lambda: at.registry.abort(session.id))
        await settle()
        waits = not aborted.ended.is_set()
        at.pi.release("prompt")

    latest = at.registry.get(session.id).latest_turn_id
    assert waits
    assert latest is not None
    assert state_of(at, session.id, latest) is TurnState.ABORTED
    assert aborted.refusal is None


async def test_an_abort_of_a_prompt_that_pi_then_rejects_returns_the_earlier_session(at: World) -> None:
    session, _ = await at.start()
    at.pi.hold("prompt")
    at.pi.word = Preflight.REJECTED
    prompted, aborted = Asked(), Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompted.run, lambda: at.registry.prompt(session.id, "work"))
        await settle()
        tasks.start_soon(aborted.run, lambda: at.registry.abort(session.id))
        await settle()
        at.pi.release("prompt")

    assert prompted.refusal is Code.PROMPT_REJECTED
    assert aborted.result == session


async def test_an_abort_ends_a_run_that_no_prompt_began(at: World) -> None:
    session, pi = await at.start()
    pi.run_foreign(active=True)

    await at.registry.abort(session.id)

    assert not pi.foreign
    _, turn = await at.registry.prompt(session.id, "work")
    assert turn.state is TurnState.RUNNING


async def test_a_caller_who_leaves_does_not_stop_the_abort(at: World) -> None:
    session, turn, _ = await at.running()
    at.pi.hold("abort")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.abort(session.id))
        await settle()
        asked.scope.cancel()
    at.pi.release("abort")
    await settle()

    assert asked.was_cancelled
    assert state_of(at, session.id, turn.turn_id) is TurnState.ABORTED


@pytest.mark.parametrize("way", ["the host dies", "the call finds the host gone", "the call is never answered"])
async def test_a_host_that_ends_during_the_abort_makes_the_turn_aborted(at: World, way: str) -> None:
    session, turn, pi = await at.running()
    at.pi.hold("abort")
    asked = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run, lambda: at.registry.abort(session.id))
        await settle()
        if way == "the host dies":
            pi.host.die()
        elif way == "the call finds the host gone":
            at.pi.release("abort", HostGone())
        else:
            pi.events.host_ended()

    assert isinstance(asked.result, SessionView)
    assert asked.result.to_json()["lastError"] == "Pi host ended"
    assert state_of(at, session.id, turn.turn_id) is TurnState.ABORTED


async def test_a_host_that_ends_after_a_failed_abort_makes_the_turn_failed(at: World) -> None:
    session, turn, pi = await at.running()
    at.pi.hold("abort")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Asked().run, lambda: at.registry.abort(session.id))
        await settle()
        at.pi.release("abort", abort_failure())
    pi.host.die()

    assert state_of(at, session.id, turn.turn_id) is TurnState.FAILED


async def test_an_abort_of_a_closing_session_shows_it_and_does_nothing(at: World) -> None:
    session, _, _ = await at.running()
    at.pi.hold("dispose")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Asked().run, lambda: at.registry.close(session.id))
        await settle()
        view = await at.registry.abort(session.id)
        at.pi.release("dispose")

    assert view.state is SessionState.CLOSING
    assert [call.kind for call in at.pi.calls].count("abort") == 1


async def test_closing_joins_the_abort_that_is_under_way(at: World) -> None:
    session, _, _ = await at.running()
    at.pi.hold("abort")
    aborted, closed = Asked(), Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(aborted.run, lambda: at.registry.abort(session.id))
        await settle()
        tasks.start_soon(closed.run, lambda: at.registry.close(session.id))
        await settle()
        at.pi.release("abort")

    assert [call.kind for call in at.pi.calls] == ["create", "prompt", "abort", "dispose"]
    assert aborted.refusal is None
