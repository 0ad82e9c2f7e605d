"""Work that outlives the caller who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.sessions.background import Background

if TYPE_CHECKING:
    from pi_session_mcp.diagnostics import Diagnostic

pytestmark = pytest.mark.anyio


async def test_work_goes_on_when_everything_around_it_is_cancelled() -> None:
    done = anyio.Event()

    async def work() -> None:
        await anyio.sleep(1)
        done.set()

    with anyio.CancelScope() as around:
        async with Background(report=lambda _: None) as background:
            background.start(work)
            around.cancel()
            with anyio.CancelScope(shield=True):
                await background.wait_until_idle()

    assert done.is_set()


async def test_work_that_is_started_after_the_end_stops_at_its_first_wait() -> None:
    waited = False

    async def work() -> None:
        nonlocal waited
        await anyio.sleep(1)
        waited = True

    async with Background(report=lambda _: None) as background:
        background.cancel_all()
        background.start(work)
        await background.wait_until_idle()

    assert not waited


async def test_a_defect_is_reported_and_ends_that_work_alone() -> None:
    said: list[Diagnostic] = []
    done = anyio.Event()

    async def defect() -> None:
        raise RuntimeError("a defect")

    async def work() -> None:
        await anyio.sleep(1)
        done.set()

    async with Background(report=said.append) as background:
        background.start(work)
        background.start(defect)
        await background.wait_until_idle()

    assert done.is_set()
    assert [one.code for one in said] == ["internal_error"]
