"""Waiting for a turn: bounded, cancellable, with progress for those who asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from pi_session_mcp.errors import Code
from tests.support.served import ERAS, World, call, error, said, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client import Client

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with served() as made:
        yield made


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


async def test_a_call_without_a_wait_does_not_wait(world: World, era: str) -> None:
    async with world.client(era) as client:
        session = (await call(client, "pi_session_start", workspace="docs"))["session"]["id"]
        turn = (await call(client, "pi_session_prompt", sessionId=session, prompt="look", waitMs=0))["turn"]
        await call(client, "pi_turn_get", sessionId=session, turnId=turn["turnId"], waitMs=0)

    assert world.registry.waits == []


async def test_a_wait_that_runs_out_is_answered_as_usual(world: World, era: str) -> None:
    async with world.client(era) as client:
        session = (await call(client, "pi_session_start", workspace="docs"))["session"]["id"]
        prompted = await call(client, "pi_session_prompt", sessionId=session, prompt="look", waitMs=1)
        turn_id = prompted["turn"]["turnId"]
        read = await call(client, "pi_turn_get", sessionId=session, turnId=turn_id, waitMs=2)

    assert prompted["session"]["state"] == prompted["turn"]["state"] == read["turn"]["state"] == "running"
    assert world.registry.waits == [(0.001, False), (0.002, False)]


async def test_a_waiting_client_that_asked_for_progress_is_told_of_life_and_no_more(world: World, era: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []
    first = anyio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        first.set()

    async def live_then_complete() -> None:
        await world.registry.waiting.wait()
        world.live()
        await first.wait()
        world.complete("done")

    async with world.client(era) as client, anyio.create_task_group() as tasks:
        session = (await call(client, "pi_session_start", workspace="docs"))["session"]["id"]
        tasks.start_soon(live_then_complete)
        result = await client.call_tool(
            "pi_session_prompt",
            {"sessionId": session, "prompt": "look", "waitMs": 50_000},
            progress_callback=hear,
        )

    assert said("pi_session_prompt", result)["turn"]["assistantText"] == "done"
    assert told == [(2.0, None, "running")]  # its start was the first sign
    assert world.registry.waits == [(50.0, True)]


async def test_a_waiting_request_that_the_client_cancels_ends_at_once_and_the_turn_goes_on(
    world: World, era: str
) -> None:
    async with world.client(era) as client:
        session = (await call(client, "pi_session_start", workspace="docs"))["session"]["id"]
        turn_id = (await call(client, "pi_session_prompt", sessionId=session, prompt="look"))["turn"]["turnId"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_call_and_forget, client, session, turn_id)
            await world.registry.waiting.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await world.registry.left.wait()
        read = await call(client, "pi_turn_get", sessionId=session, turnId=turn_id)

    assert read["turn"]["state"] == "running"
    assert world.said == []


async def _call_and_forget(client: Client, session: str, turn_id: str) -> None:
    await call(client, "pi_turn_get", sessionId=session, turnId=turn_id, waitMs=50_000)


@pytest.mark.parametrize("tool", ["pi_session_prompt", "pi_turn_get"])
@pytest.mark.parametrize("ends_first", [False, True])
@pytest.mark.parametrize("stopping", [False, True])
async def test_a_session_closed_while_one_waits_is_unknown_unless_the_server_stops(
    world: World, tool: str, *, ends_first: bool, stopping: bool
) -> None:
    registry = world.registry

    async def close() -> None:
        await (registry.shutdown() if stopping else registry.close(session))

    async def close_while_waited_for() -> None:
        await registry.waiting.wait()
        # The close comes first on the loop, but after the end of the turn.
        tasks.start_soon(close)
        if ends_first:
            world.complete("too late")

    async with world.client("legacy") as client, anyio.create_task_group() as tasks:
        session = (await call(client, "pi_session_start", workspace="docs"))["session"]["id"]
        arguments: dict[str, Any] = {"prompt": "look"}
        if tool == "pi_turn_get":
            prompted = await call(client, "pi_session_prompt", sessionId=session, prompt="look")
            arguments = {"turnId": prompted["turn"]["turnId"]}
        tasks.start_soon(close_while_waited_for)
        answer = await call(client, tool, sessionId=session, waitMs=50_000, **arguments)

    assert answer == error(Code.SERVER_STOPPING if stopping else Code.UNKNOWN_SESSION)
