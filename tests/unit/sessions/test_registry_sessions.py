"""Starting, listing, reading and closing sessions."""

from __future__ import annotations

import uuid

import anyio
import pytest

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.sessions.registry import MAX_TOMBSTONES
from pi_session_mcp.sessions.state import SessionState
from tests.support.registries import DEADLINES, DONE, Asked, settle, world

pytestmark = pytest.mark.anyio


async def test_a_started_session_shows_exactly_the_fields_of_the_contract() -> None:
    async with world() as at:
        view = await at.registry.start("project", "coder")

        fields = view.to_json()

        assert fields == {
            "id": view.id,
            "workspace": "project",
            "executionProfile": "coder",
            "profile": "coding",
            "provider": "scripted",
            "model": "scripted-1",
            "thinkingLevel": "off",
            "state": "idle",
            "createdAt": "2026-01-02T03:04:07.678Z",
            "updatedAt": "2026-01-02T03:04:07.678Z",
        }
        assert uuid.UUID(view.id).version == 4


async def test_without_a_profile_the_default_one_is_used() -> None:
    async with world() as at:
        assert (await at.registry.start("project")).execution_profile == "reader"


@pytest.mark.parametrize(
    ("workspace", "profile", "code"),
    [
        ("nothing", None, Code.UNKNOWN_WORKSPACE),
        ("nothing", "nothing", Code.UNKNOWN_WORKSPACE),
        ("project", "nothing", Code.UNKNOWN_EXECUTION_PROFILE),
    ],
)
async def test_an_alias_that_is_not_configured_is_refused(workspace: str, profile: str | None, code: Code) -> None:
    async with world() as at:
        with pytest.raises(Refusal) as refused:
            await at.registry.start(workspace, profile)

        assert refused.value.code is code
        assert at.pi.calls == []


async def test_a_refusal_of_pi_is_passed_on_with_its_stage_and_frees_the_place() -> None:
    async with world(max_sessions=1) as at:
        at.pi.refusal = Refusal(Code.UNKNOWN_MODEL, stage=Stage.MODEL)
        with pytest.raises(Refusal) as refused:
            await at.registry.start("project")
        at.pi.refusal = None

        await at.registry.start("project")

        assert (refused.value.code, refused.value.stage) == (Code.UNKNOWN_MODEL, Stage.MODEL)


async def test_a_defect_during_creation_is_an_internal_error_and_is_reported() -> None:
    async with world(max_sessions=1) as at:
        at.pi.hold("create")
        asked = Asked()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.run, lambda: at.registry.start("project"))
            await settle()
            at.pi.release("create", RuntimeError("a defect"))
        await at.registry.start("project")

        assert asked.refusal is Code.INTERNAL_ERROR
        assert [said.to_line() for said in at.diagnostics] == [
            '{"level":"error","event":"internal_error","code":"internal_error"}'
        ]


async def test_as_many_sessions_as_the_limit_allows_can_be_open_and_not_one_more() -> None:
    async with world(max_sessions=3) as at:
        views = [await at.registry.start("project") for _ in range(3)]
        with pytest.raises(Refusal) as refused:
            await at.registry.start("project")
        await at.registry.close(views[1].id)
        again = await at.registry.start("project")

        assert refused.value.code is Code.SESSION_LIMIT_REACHED
        assert [view.id for view in at.registry.list()] == [views[0].id, views[2].id, again.id]


async def test_starts_under_way_count_for_the_limit() -> None:
    async with world(max_sessions=1) as at, anyio.create_task_group() as tasks:
        at.pi.hold("create")
        asked = Asked()
        tasks.start_soon(asked.run, lambda: at.registry.start("project"))
        await settle()
        with pytest.raises(Refusal) as refused:
            await at.registry.start("project")
        at.pi.release("create")

        assert refused.value.code is Code.SESSION_LIMIT_REACHED


async def test_a_session_whose_host_ends_before_it_is_admitted_is_not_admitted() -> None:
    async with world(max_sessions=1) as at:
        at.pi.hold("create")
        asked = Asked()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.run, lambda: at.registry.start("project"))
            await settle()
            at.pi.release("create")
            at.pi.sessions[0].host.die()
        await settle()

        assert asked.refusal is Code.PI_RUNTIME_UNAVAILABLE
        assert at.registry.list() == ()
        assert at.pi.disposals == 1


@pytest.mark.parametrize("method", ["get", "abort", "close", "turn", "prompt", "wait_turn"])
async def test_a_session_that_does_not_exist_is_unknown(method: str) -> None:
    async with world() as at:
        registry, nobody = at.registry, str(uuid.uuid4())

        async def ask() -> object:
            match method:
                case "get":
                    return registry.get(nobody)
                case "turn":
                    return registry.turn(nobody, nobody)
                case "abort":
                    return await registry.abort(nobody)
                case "close":
                    return await registry.close(nobody)
                case "prompt":
                    return await registry.prompt(nobody, "work")
                case _:
                    return await registry.wait_turn(nobody, nobody, timeout_s=1)

        with pytest.raises(Refusal) as refused:
            await ask()

        assert refused.value.code is Code.UNKNOWN_SESSION


async def test_a_closed_session_is_known_only_to_a_repeated_close_which_gets_the_same_view() -> None:
    async with world() as at:
        view, _ = await at.start()
        closed = await at.registry.close(view.id)
        with pytest.raises(Refusal) as refused:
            at.registry.get(view.id)

        again = await at.registry.close(view.id)

        assert closed.state is SessionState.CLOSED
        assert again == closed
        assert refused.value.code is Code.UNKNOWN_SESSION
        assert at.pi.sessions[0].dispose_calls == 1


async def test_the_latest_hundred_closed_sessions_are_remembered_and_not_one_more() -> None:
    async with world() as at:
        closed = []
        for _ in range(MAX_TOMBSTONES):
            view, _ = await at.start()
            closed.append(await at.registry.close(view.id))
        assert MAX_TOMBSTONES == 100
        assert await at.registry.close(closed[0].id) == closed[0]
        view, _ = await at.start()
        await at.registry.close(view.id)

        with pytest.raises(Refusal) as refused:
            await at.registry.close(closed[0].id)

        assert refused.value.code is Code.UNKNOWN_SESSION
        assert await at.registry.close(closed[1].id) == closed[1]


async def test_callers_who_close_at_the_same_time_share_one_disposal() -> None:
    async with world() as at:
        view, pi = await at.start()
        at.pi.hold("dispose")
        asked = [Asked() for _ in range(3)]
        async with anyio.create_task_group() as tasks:
            for one in asked:
                tasks.start_soon(one.run, lambda: at.registry.close(view.id))
            await settle()
            seen = at.registry.get(view.id).state
            at.pi.release("dispose")

        assert seen is SessionState.CLOSING
        assert asked[0].result == asked[1].result == asked[2].result
        assert pi.dispose_calls == 1


async def test_a_caller_who_leaves_does_not_stop_the_closing() -> None:
    async with world() as at:
        view, _ = await at.start()
        at.pi.hold("dispose")
        asked = Asked()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.run, lambda: at.registry.close(view.id))
            await settle()
            asked.scope.cancel()
        at.pi.release("dispose")
        await settle()

        assert asked.was_cancelled
        assert (await at.registry.close(view.id)).state is SessionState.CLOSED


async def test_a_running_turn_is_aborted_in_pi_before_the_session_is_disposed_of() -> None:
    async with world() as at:
        view, turn, _ = await at.running()

        closed = await at.registry.close(view.id)

        assert [call.kind for call in at.pi.calls] == ["create", "prompt", "abort", "dispose"]
        assert closed.latest_turn_id == turn.turn_id


async def test_a_foreign_run_is_aborted_in_pi_before_the_session_is_disposed_of() -> None:
    async with world() as at:
        view, pi = await at.start()
        pi.run_foreign(active=True)

        await at.registry.close(view.id)

        assert [call.kind for call in at.pi.calls] == ["create", "abort", "dispose"]


@pytest.mark.parametrize("hanging", ["abort", "dispose"])
@pytest.mark.parametrize("own_host", [True, False])
async def test_closing_a_session_that_does_not_answer_gives_its_host_up_within_the_deadline(
    hanging: str, *, own_host: bool
) -> None:
    async with world() as at:
        at.pi.own_hosts = own_host
        view, _, pi = await at.running()
        at.pi.hold("abort" if hanging == "abort" else "dispose")
        if hanging == "abort":
            at.pi.hold("dispose")
        began = anyio.current_time()

        closed = await at.registry.close(view.id)
        took = anyio.current_time() - began
        await settle()

        assert closed.state is SessionState.CLOSED
        assert took == pytest.approx(DEADLINES.close_s)
        assert not pi.host.alive
        assert at.pi.disposals == 1


async def test_a_hanging_abort_leaves_time_to_dispose_within_the_deadline() -> None:
    async with world() as at:
        view, _, pi = await at.running()
        at.pi.hold("abort")

        await at.registry.close(view.id)

        assert pi.host.alive
        assert at.pi.disposals == 1


async def test_closing_on_a_shared_host_that_was_given_up_leaves_the_others_alone() -> None:
    async with world() as at:
        view, _, pi = await at.running()
        other, _ = await at.start()
        at.pi.hold("dispose")
        await at.registry.close(view.id)
        await settle()
        at.pi.held.clear()

        alive_while_needed = pi.host.alive
        still_idle = at.registry.get(other.id).state
        await at.registry.close(other.id)
        await settle()

        assert alive_while_needed
        assert still_idle is SessionState.IDLE
        assert not pi.host.alive


async def test_late_events_of_a_closed_session_change_nothing() -> None:
    async with world() as at:
        view, _, pi = await at.running()
        closed = await at.registry.close(view.id)

        pi.events.activity(1)
        pi.events.settled(1, DONE)
        pi.events.foreign_run(active=True)
        pi.events.host_ended()

        assert await at.registry.close(view.id) == closed
        assert at.registry.list() == ()


async def test_a_session_with_a_dead_host_can_be_read_and_closed_but_not_prompted() -> None:
    async with world() as at:
        view, pi = await at.start()
        pi.host.die()

        read = at.registry.get(view.id)
        with pytest.raises(Refusal) as refused:
            await at.registry.prompt(view.id, "work")
        aborted = await at.registry.abort(view.id)
        closed = await at.registry.close(view.id)

        assert (read.state, read.to_json()["lastError"]) == (SessionState.FAILED, "Pi host ended")
        assert refused.value.code is Code.PI_RUNTIME_UNAVAILABLE
        assert aborted == read
        assert closed.state is SessionState.CLOSED
        assert "lastError" not in closed.to_json()


async def test_timestamps_stand_still_while_the_wall_clock_is_behind() -> None:
    async with world() as at:
        view, _, pi = await at.running()
        at.wall.time = at.wall.time.replace(year=2020)
        pi.sign()
        pi.finish()

        after = at.registry.get(view.id)

        assert after.updated_at == view.updated_at
        assert after.updated_at >= after.created_at
