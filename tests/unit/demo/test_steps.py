"""A step of the demonstration is told with its time, and what fails is told instead of raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.demo.steps import NotSeen, Seen, Steps, require

if TYPE_CHECKING:
    from pi_session_mcp.demo.report import DemoStep

pytestmark = pytest.mark.anyio


@pytest.fixture
def told() -> list[str | DemoStep]:
    return []


@pytest.fixture
def steps(told: list[str | DemoStep]) -> Steps:
    return Steps(told.append, told.append)


async def test_a_step_is_told_before_and_after(steps: Steps, told: list[str | DemoStep]) -> None:
    async def act() -> Seen:
        assert told == ["It works"]
        return Seen.lines("one", "two\nthree")

    assert await steps.take("It works", act)

    (step,) = steps.report.steps
    assert (step.name, step.ok, step.detail) == ("It works", True, ("one", "two", "three"))
    assert step.ms >= 1
    assert told == ["It works", step]


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (NotSeen("why", "what to do"), ("why", "what to do")),
        (RuntimeError("CANARY"), ("It failed unexpectedly (RuntimeError).",)),
        (ExceptionGroup("CANARY", [OSError()]), ("It failed unexpectedly (ExceptionGroup).",)),
        (TimeoutError(), ("It did not happen in time.",)),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_fails_is_a_step_that_was_not_seen(steps: Steps, error: Exception, detail: tuple[str, ...]) -> None:
    async def act() -> Seen:
        raise error

    assert not await steps.take("It fails", act)

    (step,) = steps.report.steps
    assert (step.ok, step.detail) == (False, detail)


async def test_what_does_not_end_is_not_seen(steps: Steps) -> None:
    async def act() -> Seen:
        await anyio.sleep_forever()
        return Seen()

    assert not await steps.take("It hangs", act, within_s=0)
    assert steps.report.steps[0].detail == ("It did not happen in time.",)


async def test_a_cancelled_step_is_not_told(steps: Steps, told: list[str | DemoStep]) -> None:
    async def act() -> Seen:
        scope.cancel()
        await anyio.sleep_forever()
        return Seen()

    with anyio.CancelScope() as scope:
        await steps.take("It is cancelled", act)

    assert told == ["It is cancelled"]


def test_what_is_required_and_not_so_was_not_seen() -> None:
    require("anything true", "not raised")
    with pytest.raises(NotSeen) as refused:
        require([], "nothing there")
    assert refused.value.told == ("nothing there",)
