"""The common end of all sessions."""

from __future__ import annotations

import anyio
import pytest

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.sessions.views import SessionView
from tests.support.registries import DEADLINES, Asked, settle, world

pytestmark = pytest.mark.anyio


async def test_after_shutdown_nothing_is_open_and_nothing_new_begins() -> None:
    async with world() as at:
        session, _, _ = await at.running()
        await at.start()

        await at.registry.shutdown()

        with pytest.raises(Refusal) as refused:
            at.registry.get(session.id)
        assert refused.value.code is Code.SERVER_STOPPING
        assert at.registry.list() == ()
        assert at.pi.disposals == at.pi.creations == 2
        for ask in (
            lambda: at.registry.start("project"),
            lambda: at.registry.start("nothing"),
            lambda: at.registry.prompt(session.id, "work"),
            lambda: at.registry.wait_turn(session.id, session.id, timeout_s=1),
        ):
            with pytest.raises(Refusal) as refused:
                await ask()
            assert refused.value.code is Code.SERVER_STOPPING


async def test_shutting_down_twice_is_one_shutdown() -> None:
    async with world() as at:
        await at.running()
        at.pi.hold("abort")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(at.registry.shutdown)
            tasks.start_soon(at.registry.shutdown)
            await settle()
            at.pi.release("abort")

        assert at.pi.sessions[0].dispose_calls == 1


async def test_waiters_and_provisional_prompts_end_at_once_with_server_stopping() -> None:
    async with world() as at:
        first, turn, _ = await at.running()
        second, _ = await at.start()
        at.pi.hold("prompt", "abort", "dispose")
        waiting, prompting = Asked(), Asked()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiting.run, lambda: at.registry.wait_turn(first.id, turn.turn_id, timeout_s=50))
            tasks.start_soon(prompting.run, lambda: at.registry.prompt(second.id, "work"))
            await settle()
            began = anyio.current_time()
            tasks.start_soon(at.registry.shutdown)
            await waiting.ended.wait()
            await prompting.ended.wait()
            took = anyio.current_time() - began
            at.pi.release("dispose")

        assert (waiting.refusal, prompting.refusal) == (Code.SERVER_STOPPING, Code.SERVER_STOPPING)
        assert took == 0


async def test_a_start_under_way_is_refused_at_once_awaited_and_disposed_of() -> None:
    async with world() as at:
        at.pi.hold("create")
        asked, shutdown = Asked(), Asked()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.run, lambda: at.registry.start("project"))
            await settle()
            tasks.start_soon(shutdown.run, at.registry.shutdown)
            await asked.ended.wait()
            await anyio.sleep(1)
            still_waiting = not shutdown.ended.is_set()
            at.pi.release("create")

        assert asked.refusal is Code.SERVER_STOPPING
        assert still_waiting
        assert at.pi.disposals == at.pi.creations == 1


async def test_all_sessions_close_in_parallel() -> None:
    async with world() as at:
        for _ in range(5):
            await at.running()
        at.pi.hold("abort", "dispose")
        began = anyio.current_time()

        await at.registry.shutdown()

        assert anyio.current_time() - began == pytest.approx(DEADLINES.close_s)


async def test_shutdown_keeps_its_bound_whatever_hangs() -> None:
    async with world() as at:
        await at.running()
        at.pi.hold("create", "abort", "dispose", "prompt")
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Asked().run, lambda: at.registry.start("project"))
            await settle()
            await at.registry.shutdown()

        assert anyio.current_time() - began <= DEADLINES.registry_shutdown_s + 0.1


async def test_a_close_under_way_is_answered_with_the_closed_session() -> None:
    async with world() as at:
        session, _ = await at.start()
        at.pi.hold("dispose")
        asked = Asked()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.run, lambda: at.registry.close(session.id))
            await settle()
            tasks.start_soon(at.registry.shutdown)
            await settle()
            at.pi.release("dispose")

        assert isinstance(asked.result, SessionView)
        assert asked.result.state.value == "closed"


async def test_leaving_the_registry_under_cancellation_still_aborts_and_disposes() -> None:
    with anyio.CancelScope() as everything:
        async with world() as at:
            await at.running()
            everything.cancel()
            await anyio.sleep(1)

    assert [call.kind for call in at.pi.calls] == ["create", "prompt", "abort", "dispose"]
    assert at.pi.disposals == at.pi.creations


async def test_a_close_under_way_is_finished_when_everything_is_cancelled() -> None:
    with anyio.CancelScope() as everything:
        async with world() as at, anyio.create_task_group() as tasks:
            session, _, _ = await at.running()
            at.pi.hold("abort")
            tasks.start_soon(at.registry.close, session.id)
            await settle()
            everything.cancel()

    assert [call.kind for call in at.pi.calls] == ["create", "prompt", "abort", "dispose"]
    assert at.pi.disposals == at.pi.creations
