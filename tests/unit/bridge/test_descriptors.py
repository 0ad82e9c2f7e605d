"""However few descriptors are free: a server starts, or nothing of it is left open."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.bridge.judge import Judge
from pi_session_mcp.bridge.process import Launch, running_server
from pi_session_mcp.bridge.results import Delivered
from pi_session_mcp.bridge.servers import ExternalServers
from pi_session_mcp.errors import Refusal
from tests.support.trees import WAIT_S
from tests.unit.bridge.bench import GENEROUS, Bench, Calls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@contextmanager
def few_descriptors(free: int) -> Iterator[None]:
    """At most so many can be opened: those below the lowest limit are all taken."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/dev/fd")))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] < highest:
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)


def opened() -> set[str]:
    return set(os.listdir("/dev/fd"))


@pytest.mark.parametrize("free", range(17))
async def test_a_server_starts_or_leaves_no_descriptor(free: int, tmp_path: Path) -> None:
    launch = Launch(("/bin/cat",), {}, str(tmp_path))
    before = opened()
    with few_descriptors(free):
        try:
            async with running_server(launch):
                pass
        except OSError:
            assert free < 16
    assert opened() == before


async def test_a_session_that_cannot_start_a_server_is_refused_and_the_next_one_is_not(bench: Bench) -> None:
    servers = {"library": bench.fixture().server()}
    async with bench.session(servers) as session:
        assert await Calls(session).result("mcp_library_echo") == Delivered(("{}",))
    before = opened()
    for free in range(0, 24, 3):
        with few_descriptors(free):
            async with ExternalServers(os.environ, GENEROUS) as external:
                session = external.start(servers, bench.directory)
                with suppress(Refusal):
                    await session.ready()
                    await Calls(session).result("mcp_library_echo")
                await session.end()
        assert opened() == before
        assert bench.alive() == []


async def test_a_judge_that_cannot_be_started_has_no_answer() -> None:
    judge = Judge(WAIT_S, 600.0)
    async with anyio.create_task_group() as tasks:
        with few_descriptors(2):
            tasks.start_soon(judge.run)
            assert await judge.keeps('{"type":"object"}', "{}") is None
        assert await judge.keeps('{"type":"object"}', "{}") is True
        judge.close()
