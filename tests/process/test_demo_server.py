"""The demonstration's server is ended whatever it does, and one that ends by itself is told with its reason."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import anyio
import psutil
import pytest

from pi_session_mcp.demo.life import live
from pi_session_mcp.demo.server import running_server
from pi_session_mcp.demo.steps import Steps
from pi_session_mcp.demo.world import DemoWorld, throw_away_world
from tests.support.trees import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture
def world() -> Iterator[DemoWorld]:
    with throw_away_world() as made:
        yield made


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if is_alive(child)]


async def test_a_server_that_is_stuck_is_killed(world: DemoWorld) -> None:
    async with running_server(world, end_within_s=0.1) as server:
        (process,) = children()
        os.kill(process.pid, signal.SIGSTOP)

        assert await server.end() == -signal.SIGKILL
        assert server.family().members == frozenset()

    assert not process.is_running()


async def test_a_cancelled_owner_has_ended_its_server(world: DemoWorld) -> None:
    with anyio.CancelScope() as scope:
        async with running_server(world) as server:
            (process,) = children()
            assert server.family().alive() == 1
            scope.cancel()
            await anyio.sleep_forever()

    assert not process.is_running()
    assert server.family().alive() == 0


async def test_a_server_that_refuses_to_start_is_told_with_its_code(world: DemoWorld) -> None:
    (world.root / "config.json").write_text("{")
    steps = Steps(lambda _: None, lambda _: None)

    await live(steps, world)

    end = steps.report.steps[-1]
    assert (end.ok, end.detail[:2]) == (False, ("exit status: 1", "config_invalid"))
    assert children() == []
