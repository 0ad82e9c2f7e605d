"""The spare host: ready before a session needs it, used by one session, replaced, and never kept for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import HostGone, Refusal
from tests.process.test_host import PATIENT, ask, world

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.host.host import Host

pytestmark = pytest.mark.anyio


def hosts_of(made: object) -> set[Host]:
    hosts: set[Host] = made.pool._hosts  # type: ignore[attr-defined]
    return hosts


async def test_a_session_gets_the_spare_host_which_no_other_gets(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.pool.warm(shared=False, spare=True)
        made.pool.warm(shared=False, spare=True)
        (spare,) = hosts_of(made)
        await spare.ready()

        first, second = await made.pool.own(), await made.pool.own()

        assert first is spare
        assert second is not spare
        await ask(first)
        first.vacate()
        await first.gone.wait()
        await ask(second)
    assert made.reasons == []


async def test_the_next_spare_starts_only_when_it_is_asked_for(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        used = await made.pool.own()
        assert hosts_of(made) == {used}

        made.pool.warm(shared=False, spare=True)

        (spare,) = hosts_of(made) - {used}
        assert await made.pool.own() is spare


async def test_a_spare_that_nobody_needs_ends_silently_and_is_not_handed_out(tmp_path: Path) -> None:
    async with world(tmp_path, Deadlines(host_start_s=20.0, host_ping_s=20.0, host_idle_s=0.2)) as made:
        made.pool.warm(shared=False, spare=True)
        (spare,) = hosts_of(made)
        await spare.gone.wait()

        host = await made.pool.own()

        assert host is not spare
        await ask(host)
    assert made.reasons == []


async def test_a_spare_that_does_not_come_up_leaves_the_next_one_usable(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = "an old node"
        made.pool.warm(shared=False, spare=True)
        with pytest.raises(Refusal):
            await made.pool.own()
        made.behaviour = "behaves"

        await ask(await made.pool.own())
    assert made.reasons == ["not_started"]


async def test_a_pool_that_is_left_starts_nothing_any_more(tmp_path: Path) -> None:
    async with world(tmp_path, PATIENT) as made:
        host = await made.pool.shared()
    made.pool.warm(shared=True, spare=True)
    assert hosts_of(made) == set()
    with pytest.raises(HostGone):
        await ask(host)
