"""The tools over the real registry, with Pi in memory and time that passes virtually."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pi_session_mcp.errors import Code
from pi_session_mcp.sessions.outcome import outcome_of
from tests.support import registries
from tests.support.served import UNKNOWN, call, connected, error, said
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client import Client

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """asyncio on a loop that jumps to the next timer when nothing else is left to do."""
    return "asyncio", {"loop_factory": VirtualTimeLoop}


@asynccontextmanager
async def delegation() -> AsyncIterator[tuple[Client, registries.World]]:
    """A client of the tools, and the world behind them."""
    async with (
        registries.world() as world,
        connected(world.registry, registries.configuration(), world.diagnostics.append) as client,
    ):
        yield client, world


async def started(client: Client) -> str:
    session: str = (await call(client, "pi_session_start", workspace="project"))["session"]["id"]
    return session


async def test_a_session_lives_from_its_start_to_its_close() -> None:
    async with delegation() as (client, world):
        session = await started(client)
        first = await call(client, "pi_session_prompt", sessionId=session, prompt="work")
        world.pi.sessions[0].finish(outcome_of("stop", aborted=False, text="  the answer \x85\u2028\x00\ud800.  "))
        await registries.settle()
        turn = await call(client, "pi_turn_get", sessionId=session, turnId=first["turn"]["turnId"])
        listed = await call(client, "pi_session_list")
        closed = await call(client, "pi_session_close", sessionId=session)
        again = await call(client, "pi_session_close", sessionId=session)
        after = await call(client, "pi_session_get", sessionId=session)

    assert first["session"]["state"] == first["turn"]["state"] == "running"
    assert turn["turn"]["assistantText"] == "the answer \x85\u2028\x00\ufffd."
    assert [view["state"] for view in listed["sessions"]] == ["idle"]
    assert closed == again
    assert closed["session"]["state"] == "closed"
    assert after == error(Code.UNKNOWN_SESSION)


async def test_the_largest_answer_fits_its_schema_and_says_that_it_was_cut() -> None:
    async with delegation() as (client, world):
        session = await started(client)
        turn = (await call(client, "pi_session_prompt", sessionId=session, prompt="work"))["turn"]
        world.pi.sessions[0].finish(outcome_of("stop", aborted=False, text="\x00" * 5_000_000))
        await registries.settle()
        read = await call(client, "pi_turn_get", sessionId=session, turnId=turn["turnId"])

    assert (read["turn"]["assistantText"], read["turn"]["truncated"]) == ("\x00" * 65_536, True)


async def test_a_failed_and_an_aborted_turn_fit_their_schema() -> None:
    async with delegation() as (client, world):
        session = await started(client)
        failed = (await call(client, "pi_session_prompt", sessionId=session, prompt="work"))["turn"]
        world.pi.sessions[0].finish(outcome_of("error", aborted=False, text="sk-123"))
        await registries.settle()
        failed = await call(client, "pi_turn_get", sessionId=session, turnId=failed["turnId"])
        listed = await call(client, "pi_session_list")
        aborted = (await call(client, "pi_session_prompt", sessionId=session, prompt="more"))["turn"]
        await call(client, "pi_session_abort", sessionId=session)
        aborted = await call(client, "pi_turn_get", sessionId=session, turnId=aborted["turnId"])

    assert failed["turn"]["error"] == {"code": "turn_failed", "message": "Pi turn failed"}
    assert listed["sessions"][0]["lastError"] == "Pi turn failed"
    assert aborted["turn"]["state"] == "aborted"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("pi_session_start", {"workspace": "../project"}, Code.UNKNOWN_WORKSPACE),
        ("pi_session_start", {"workspace": ""}, Code.UNKNOWN_WORKSPACE),
        ("pi_session_start", {"workspace": "project\x00"}, Code.UNKNOWN_WORKSPACE),
        ("pi_session_start", {"workspace": "project", "executionProfile": ""}, Code.UNKNOWN_EXECUTION_PROFILE),
        ("pi_session_get", {"sessionId": UNKNOWN}, Code.UNKNOWN_SESSION),
        ("pi_session_prompt", {"sessionId": UNKNOWN, "prompt": "x", "waitMs": 9}, Code.UNKNOWN_SESSION),
        ("pi_turn_get", {"sessionId": UNKNOWN, "turnId": UNKNOWN}, Code.UNKNOWN_SESSION),
        ("pi_session_abort", {"sessionId": UNKNOWN}, Code.UNKNOWN_SESSION),
        ("pi_session_close", {"sessionId": UNKNOWN}, Code.UNKNOWN_SESSION),
    ],
)
async def test_what_does_not_exist_is_unknown(tool: str, arguments: dict[str, Any], code: Code) -> None:
    async with delegation() as (client, _):
        assert await call(client, tool, **arguments) == error(code)


async def test_a_prompt_that_waits_answers_with_the_session_as_it_is_after_the_wait() -> None:
    async with delegation() as (client, world), anyio.create_task_group() as tasks:
        session = await started(client)
        tasks.start_soon(finish_after, world, 49.9)
        prompted = await call(client, "pi_session_prompt", sessionId=session, prompt="work", waitMs=50_000)

    assert (prompted["session"]["state"], prompted["turn"]["state"]) == ("idle", "completed")
    assert prompted["session"]["latestTurnId"] == prompted["turn"]["turnId"]


async def test_a_wait_ends_with_its_time_and_not_before() -> None:
    async with delegation() as (client, _):
        session = await started(client)
        begin = anyio.current_time()
        prompted = await call(client, "pi_session_prompt", sessionId=session, prompt="work", waitMs=50_000)
        waited_s = anyio.current_time() - begin

    assert prompted["turn"]["state"] == "running"
    assert waited_s == pytest.approx(50.0)


async def test_progress_comes_at_most_once_a_second_rises_and_says_nothing_else() -> None:
    told: list[tuple[float, float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((anyio.current_time(), progress, total, message))

    async with delegation() as (client, world), anyio.create_task_group() as tasks:
        session = await started(client)
        tasks.start_soon(live_then_finish, world, 40, 0.25)
        arguments = {"sessionId": session, "prompt": "work", "waitMs": 50_000}
        result = await client.call_tool("pi_session_prompt", arguments, progress_callback=hear)

    times, counts = [at for at, *_ in told], [count for _, count, *_ in told]
    assert said("pi_session_prompt", result)["turn"]["state"] == "completed"
    assert len(told) >= 8
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))
    assert all(later > earlier for earlier, later in pairwise(counts))
    assert {(total, message) for *_, total, message in told} == {(None, "running")}


@pytest.mark.parametrize(("end", "code"), [("close", Code.UNKNOWN_SESSION), ("stop", Code.SERVER_STOPPING)])
async def test_closing_and_stopping_end_every_waiter_at_once(end: str, code: Code) -> None:
    answers: list[dict[str, Any]] = []

    async def wait(client: Client, session: str, turn: str) -> None:
        answers.append(await call(client, "pi_turn_get", sessionId=session, turnId=turn, waitMs=50_000))

    async with delegation() as (client, world):
        session = await started(client)
        turn = (await call(client, "pi_session_prompt", sessionId=session, prompt="work"))["turn"]["turnId"]
        begin = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait, client, session, turn)
            await anyio.sleep(1)
            if end == "close":
                await call(client, "pi_session_close", sessionId=session)
            else:
                tasks.start_soon(world.registry.shutdown)
        ended_after_s = anyio.current_time() - begin

    assert answers == [error(code)] * 3
    assert ended_after_s < 2


async def finish_after(world: registries.World, seconds: float) -> None:
    await anyio.sleep(seconds)
    world.pi.sessions[-1].finish()


async def live_then_finish(world: registries.World, signs: int, gap_s: float) -> None:
    for _ in range(signs):
        await anyio.sleep(gap_s)
        world.pi.sessions[-1].sign()
    world.pi.sessions[-1].finish()
