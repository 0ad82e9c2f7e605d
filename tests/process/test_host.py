"""The server's side of a host: it greets, watches, and ends what breaks the protocol, and nothing of it is left."""

from __future__ import annotations

import os
import resource
import shlex
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import psutil
import pytest

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import Code, HostGone, Refusal
from pi_session_mcp.host import client, process
from pi_session_mcp.host.client import MAX_ABANDONED, MAX_UNREAD_BYTES
from pi_session_mcp.host.pool import HostPool
from pi_session_mcp.host.process import Launch
from pi_session_mcp.host.protocol import Call, Done, Empty, Ping
from tests.support import false_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from pi_session_mcp.diagnostics import Diagnostic
    from pi_session_mcp.host.host import Host
    from pi_session_mcp.host.protocol import SessionFrame

pytestmark = pytest.mark.anyio

PATIENT = Deadlines(host_start_s=20.0, host_ping_s=20.0, host_idle_s=600.0)


class World:
    """A pool over false hosts, and what it said."""

    def __init__(self, directory: Path, bounds: Deadlines) -> None:
        self.behaviour = "behaves"
        self.reported: list[Diagnostic] = []
        self.printed: list[int] = []
        self._directory = directory
        self.pool = HostPool(self._launch, bounds, self.reported.append, lambda size, _: self.printed.append(size))

    def _launch(self) -> Launch:
        program = self._directory / f"{self.behaviour.replace(' ', '-')}.sh"
        words = shlex.join([sys.executable, false_host.__file__, self.behaviour])
        program.write_text(f"#!/bin/sh\nexec {words}\n")
        program.chmod(0o755)
        return Launch(program, Path("/sdk"), None, None, {"PATH": os.environ["PATH"]})

    @property
    def reasons(self) -> list[str | None]:
        return [diagnostic.reason for diagnostic in self.reported]


@asynccontextmanager
async def world(directory: Path, bounds: Deadlines = PATIENT) -> AsyncIterator[World]:
    made = World(directory, bounds)
    before = children()
    async with made.pool:
        yield made
    assert children() <= before


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


class Sink:
    """A session's ear."""

    def __init__(self) -> None:
        self.ended = anyio.Event()

    def host_event(self, event: SessionFrame) -> None:
        raise AssertionError(event)

    def host_ended(self) -> None:
        self.ended.set()


async def ask(host: Host) -> None:
    await host.client.request(Ping(), Empty)


def descriptors() -> set[str]:
    return set(os.listdir("/dev/fd"))


@contextmanager
def only_so_many_more_descriptors(count: int) -> Iterator[None]:
    lowest_free = os.dup(0)
    os.close(lowest_free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + count, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_start_that_runs_out_of_descriptors_leaves_none_open() -> None:
    launch = Launch(Path("/bin/true"), Path("/sdk"), None, None, {"PATH": os.environ["PATH"]})
    before = descriptors()
    for count in range(10):  # a socket pair, two pipes, and the keeper's two
        with only_so_many_more_descriptors(count), pytest.raises(OSError, match="Too many open files"):
            process.start(launch)
        assert descriptors() == before


async def test_a_host_that_behaves_answers_and_is_gone_after_the_pool(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        host = await made.pool.shared()
        await ask(host)
        assert await made.pool.shared() is host
    assert host.gone.is_set()
    assert made.reasons == []


@pytest.mark.parametrize(
    "behaviour",
    [
        "another protocol",
        "an old node",
        "an old sdk",
        "a new sdk",
        "an export is missing",
        "exits at once",
    ],
)
async def test_a_host_that_does_not_come_up_is_a_runtime_that_is_unavailable(behaviour: str, tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = behaviour
        with pytest.raises(Refusal) as refused:
            await made.pool.shared()
        assert refused.value.code is Code.PI_RUNTIME_UNAVAILABLE
        made.behaviour = "behaves"
        await ask(await made.pool.shared())
    assert len(made.reasons) == 1


async def test_a_host_that_never_greets_is_ended_at_its_bound(tmp_path: Path) -> None:
    async with world(tmp_path, Deadlines(host_start_s=0.5, host_ping_s=20, host_idle_s=600)) as made:
        made.behaviour = "never greets"
        with pytest.raises(Refusal):
            await made.pool.shared()
    assert made.reasons == ["not_started"]


@pytest.mark.parametrize(
    "behaviour",
    [
        "garbage",
        "not utf-8",
        "an unknown field",
        "an answer nobody asked for",
        "two answers",
        "an event of no session",
        "a result of another kind",
        "an endless line",
    ],
)
async def test_a_host_that_breaks_the_protocol_is_ended(behaviour: str, tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = behaviour
        host = await made.pool.shared()
        sink = Sink()
        host.client.place(sink)
        with suppress(HostGone):
            await ask(host)
        await sink.ended.wait()
        await host.gone.wait()
    assert made.reasons == ["protocol"]


class Patient(Sink):
    """Takes whatever the host says, and answers its calls with a text."""

    def __init__(self, host: Host, text: str) -> None:
        super().__init__()
        self.heard = anyio.Event()
        self._client = host.client
        self._text = text

    def host_event(self, event: SessionFrame) -> None:
        self.heard.set()
        if isinstance(event, Call):
            self._client.end_call(Done(done=event.call, failed=False, texts=[self._text]))


@pytest.mark.parametrize(
    ("behaviour", "text"),
    [
        ("a flood of events", ""),
        ("a flood of calls", "x"),
        ("calls whose answers it does not read", "x" * (MAX_UNREAD_BYTES // (false_host.CALLS - 10))),
    ],
)
async def test_a_host_that_says_more_or_reads_less_than_any_session_has_reason_to_is_ended(
    behaviour: str, text: str, tmp_path: Path
) -> None:
    async with world(tmp_path) as made:
        made.behaviour = behaviour
        host = await made.pool.shared()
        sink = Patient(host, text)
        host.client.place(sink)
        with pytest.raises(HostGone):
            await ask(host)
        await sink.ended.wait()
        await host.gone.wait()
    assert made.reasons == ["overrun"]


async def test_answers_that_wait_for_a_host_to_read_them_are_kept_up_to_the_bound(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = "calls whose answers it does not read"
        host = await made.pool.shared()
        host.client.place(Patient(host, "x" * (MAX_UNREAD_BYTES // false_host.CALLS - 100)))
        with pytest.raises(TimeoutError):
            await host.client.request(Ping(), Empty, within_s=1)
        assert host.usable
        host.end(now=True)
    assert made.reasons == []


@pytest.mark.parametrize("behaviour", ["a flood of events", "a flood of calls"])
async def test_a_host_is_killed_at_once_while_it_floods_its_channel(
    behaviour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_FRAMES", 10**9)
    async with world(tmp_path) as made:
        made.behaviour = behaviour
        host = await made.pool.shared()
        sink = Patient(host, "")
        host.client.place(sink)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_in_vain, host)
            await sink.heard.wait()
            host.end(now=True)
            with anyio.fail_after(20):
                await host.gone.wait()


async def ask_in_vain(host: Host) -> None:
    with suppress(HostGone):
        await ask(host)


async def test_requests_that_a_host_owes_answers_to_are_bounded(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = "stuck"
        host = await made.pool.shared()
        for number in range(MAX_ABANDONED + 1):
            assert host.usable, number
            with suppress(TimeoutError):
                await host.client.request(Ping(), Empty, within_s=0)
        await host.gone.wait()
    assert made.reasons == ["overrun"]


async def test_a_host_that_exits_ends_its_sessions(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = "exits"
        host = await made.pool.shared()
        sink = Sink()
        host.client.place(sink)
        with pytest.raises(HostGone):
            await ask(host)
        assert sink.ended.is_set()
        made.behaviour = "behaves"
        assert await made.pool.shared() is not host
    assert made.reasons == ["exited"]


async def test_a_host_that_owes_an_answer_and_a_ping_is_ended(tmp_path: Path) -> None:
    async with world(tmp_path, Deadlines(host_start_s=20, host_ping_s=0.2, host_idle_s=600)) as made:
        made.behaviour = "stuck"
        host = await made.pool.shared()
        with pytest.raises(HostGone):
            await host.client.request(Ping(), Empty, watch_after_s=0.1)
        await host.gone.wait()
    assert made.reasons == ["unresponsive"]


async def test_a_host_that_is_stuck_is_killed_when_the_pool_ends(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = "stuck"
        host = await made.pool.shared()
        with pytest.raises(TimeoutError):
            await host.client.request(Ping(), Empty, within_s=0.1)
        host.end(now=True)
    assert host.gone.is_set()


async def test_an_answer_that_nobody_waits_for_any_more_harms_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        host = await made.pool.shared()
        with anyio.CancelScope() as leaving:
            leaving.cancel()
            await ask(host)
        await ask(host)
        assert host.usable


async def test_a_host_without_sessions_ends_after_a_while(tmp_path: Path) -> None:
    async with world(tmp_path, Deadlines(host_start_s=20, host_ping_s=20, host_idle_s=0.1)) as made:
        host = await made.pool.shared()
        host.vacate()
        await host.gone.wait()
        assert await made.pool.shared() is not host
    assert made.reasons == []


async def test_a_host_with_a_session_does_not_end_by_itself(tmp_path: Path) -> None:
    async with world(tmp_path, Deadlines(host_start_s=20, host_ping_s=20, host_idle_s=0.05)) as made:
        host = await made.pool.shared()
        with anyio.move_on_after(0.5):
            await host.gone.wait()
        await ask(host)


async def test_a_retiring_host_takes_no_session_and_ends_with_its_last(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        first = await made.pool.shared()
        assert await made.pool.shared() is first
        first.retire()
        second = await made.pool.shared()
        assert second is not first
        first.vacate()
        await ask(first)
        first.vacate()
        await first.gone.wait()
        await ask(second)


async def test_a_start_that_nobody_waits_for_any_more_serves_the_next(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        with anyio.CancelScope() as leaving:
            leaving.cancel()
            await made.pool.shared()
        await ask(await made.pool.shared())
    assert made.reasons == []


async def test_what_a_host_prints_is_counted_and_dropped(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.behaviour = "prints"
        await ask(await made.pool.shared())
    assert sum(made.printed) == len(b"printed\nby a child\n")


async def test_killing_the_keeper_ends_the_host(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        host = await made.pool.shared()
        (keeper,) = psutil.Process().children()
        keeper.kill()
        await host.gone.wait()
    assert made.reasons == ["exited"]
