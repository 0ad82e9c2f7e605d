"""What the registry may rely on, whichever `ports.PiSessions` it is given."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.errors import Code, HostGone, Refusal
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.terms.selection import Selection
from tests.contract.hosted_world import hosted_world
from tests.contract.pi_worlds import PATIENCE_S, FakeWorld, Heard
from tests.support.environment import ensure_installed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pi_session_mcp.runtime.locate import Runtime
    from pi_session_mcp.sessions.ports import PiSession, SessionSpec
    from tests.contract.hosted_world import HostedWorld
    from tests.contract.pi_worlds import PiWorld

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    """What real hosts run on."""
    return ensure_installed()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """For the world that lasts as long as the module."""
    return "asyncio"


@pytest.fixture(scope="module")
async def hosted(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HostedWorld]:
    """One for all tests: those whose host has ended get a new one, as the contract says."""
    async with hosted_world(tmp_path_factory.mktemp("hosted"), runtime) as real:
        yield real


@pytest.fixture(params=["fake", "hosted"])
async def world(request: pytest.FixtureRequest, hosted: HostedWorld) -> PiWorld:
    """Every world in which the contract holds."""
    if request.param == "fake":
        return FakeWorld()
    await until_a_host_is_up(hosted)
    return hosted


async def until_a_host_is_up(world: HostedWorld) -> None:
    """The last test may have killed the host just now, which is noticed a moment later."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            with suppress(Refusal):
                return await (await world.pi.create(world.spec(), Heard())).dispose()


async def opened(world: PiWorld) -> tuple[PiSession, Heard]:
    heard = Heard()
    with anyio.fail_after(PATIENCE_S):
        return await world.pi.create(world.spec(), heard), heard


async def test_a_session_has_what_was_selected(world: PiWorld) -> None:
    session, _ = await opened(world)
    profile = world.spec().profile

    assert session.selection == Selection(profile.provider, profile.model, profile.thinking_level)
    assert not session.own_host
    await session.dispose()


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("spec_of_unknown_provider", Code.UNKNOWN_PROVIDER),
        ("spec_of_unknown_model", Code.UNKNOWN_MODEL),
        ("spec_without_credentials", Code.LOCAL_AUTHENTICATION_MISSING),
    ],
)
async def test_what_cannot_be_selected_is_refused_with_its_code(world: PiWorld, what: str, code: Code) -> None:
    spec: SessionSpec = getattr(world, what)()
    with pytest.raises(Refusal) as refused, anyio.fail_after(PATIENCE_S):
        await world.pi.create(spec, Heard())

    assert refused.value.code is code


async def test_a_prompt_starts_and_settles_with_the_answer(world: PiWorld) -> None:
    session, heard = await opened(world)

    assert await session.prompt(1, world.answers("forty-two")) is Preflight.STARTED
    outcome = await heard.outcome_of(1)

    assert (outcome.stop_reason, outcome.aborted, outcome.answer.text) == ("stop", False, "forty-two")
    await session.dispose()


async def test_each_completed_tool_execution_and_message_is_a_sign_of_life(world: PiWorld) -> None:
    session, heard = await opened(world)
    await session.prompt(1, world.calls_tool_then_answers("read it"))
    outcome = await heard.outcome_of(1)

    assert outcome.answer.text == "read it"
    assert heard.signs == [1, 1, 1]
    await session.dispose()


async def test_events_carry_the_number_of_their_turn(world: PiWorld) -> None:
    session, heard = await opened(world)
    for turn, text in ((1, "first"), (7, "second")):
        await session.prompt(turn, world.answers(text))
        assert (await heard.outcome_of(turn)).answer.text == text

    assert [turn for turn, _ in heard.outcomes] == [1, 7]
    assert set(heard.signs) <= {1, 7}
    await session.dispose()


async def test_a_model_that_fails_settles_as_an_error(world: PiWorld) -> None:
    session, heard = await opened(world)
    await session.prompt(1, world.fails())
    outcome = await heard.outcome_of(1)

    assert (outcome.stop_reason, outcome.aborted) == ("error", False)
    await session.dispose()


async def test_an_abort_returns_when_the_run_has_settled_as_aborted(world: PiWorld) -> None:
    session, heard = await opened(world)
    await session.prompt(1, world.stalls())
    with anyio.fail_after(PATIENCE_S):
        await session.abort()

    assert (await heard.outcome_of(1)).aborted
    await session.dispose()


async def test_an_abort_without_a_run_returns_and_does_not_touch_the_next_prompt(world: PiWorld) -> None:
    session, heard = await opened(world)
    with anyio.fail_after(PATIENCE_S):
        await session.abort()
    await session.prompt(1, world.answers("fine"))

    assert (await heard.outcome_of(1)).answer.text == "fine"
    await session.dispose()


async def test_a_session_goes_on_after_an_abort(world: PiWorld) -> None:
    session, heard = await opened(world)
    await session.prompt(1, world.stalls())
    await session.abort()
    await session.prompt(2, world.answers("again"))

    assert (await heard.outcome_of(2)).answer.text == "again"
    await session.dispose()


async def test_a_prompt_whose_caller_leaves_can_be_aborted_and_the_next_one_works(world: PiWorld) -> None:
    session, heard = await opened(world)
    prompt = world.stalls()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await session.prompt(1, prompt)
    with anyio.fail_after(PATIENCE_S):
        await session.abort()
    await heard.until(lambda: all(outcome.aborted for _, outcome in heard.outcomes))
    await session.prompt(2, world.answers("next"))

    assert (await heard.outcome_of(2)).answer.text == "next"
    await session.dispose()


async def test_nothing_is_heard_after_dispose_and_a_second_dispose_has_no_effect(world: PiWorld) -> None:
    session, heard = await opened(world)
    await session.prompt(1, world.stalls())
    with anyio.fail_after(PATIENCE_S):
        await session.dispose()
        said = (list(heard.signs), list(heard.outcomes), heard.ends)
        await session.dispose()
        await world.kill_host(session)

    assert (heard.signs, heard.outcomes, heard.ends) == said


async def test_sessions_on_one_host_do_not_hear_each_other(world: PiWorld) -> None:
    first, first_heard = await opened(world)
    second, second_heard = await opened(world)
    await first.prompt(1, world.stalls())
    await second.prompt(1, world.answers("of the second"))

    assert (await second_heard.outcome_of(1)).answer.text == "of the second"
    assert first_heard.outcomes == []
    await first.dispose()
    await second.dispose()


async def test_a_host_that_dies_is_heard_once_and_every_call_finds_it_gone(world: PiWorld) -> None:
    session, heard = await opened(world)
    await session.prompt(1, world.stalls())
    await world.kill_host(session)
    await heard.until(lambda: heard.ends > 0)
    with anyio.fail_after(PATIENCE_S):
        with pytest.raises(HostGone):
            await session.prompt(2, world.answers("never"))
        with pytest.raises(HostGone):
            await session.abort()
        await session.dispose()

    assert heard.ends == 1
    assert heard.outcomes == []


async def test_after_a_host_died_the_next_session_gets_a_new_one(world: PiWorld) -> None:
    session, heard = await opened(world)
    await world.kill_host(session)
    await heard.until(lambda: heard.ends > 0)
    fresh, fresh_heard = await opened(world)
    await fresh.prompt(1, world.answers("alive"))

    assert (await fresh_heard.outcome_of(1)).answer.text == "alive"
    await fresh.dispose()


async def test_a_shared_host_that_is_given_up_ends_when_its_other_sessions_have_closed(world: PiWorld) -> None:
    session, heard = await opened(world)
    other, other_heard = await opened(world)
    session.end_host()
    await other.prompt(1, world.answers("still here"))
    answered = await other_heard.outcome_of(1)
    ended_early = heard.ends
    await other.dispose()
    await heard.until(lambda: heard.ends > 0)

    assert answered.answer.text == "still here"
    assert ended_early == 0
    assert (heard.ends, other_heard.ends) == (1, 0)
    await session.dispose()


async def test_a_shared_host_that_is_given_up_by_its_only_session_ends_at_once(world: PiWorld) -> None:
    session, heard = await opened(world)
    session.end_host()
    await heard.until(lambda: heard.ends > 0)

    assert heard.ends == 1
    await session.dispose()
