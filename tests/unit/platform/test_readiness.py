"""One registration for many waits: nothing is missed, nothing is said twice, and nobody spins."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.platform.readiness import Readiness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


class Pipe:
    """A pipe whose writing end is closed once."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        self._open = True

    def write(self, data: bytes) -> None:
        os.write(self._writer, data)

    def end(self) -> None:
        if self._open:
            self._open = False
            os.close(self._writer)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.end()
    os.close(made.reader)


async def some_turns_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def is_registered(pipe: Pipe) -> bool:
    """Whether the loop looks at the pipe; afterwards it does not."""
    return asyncio.get_running_loop().remove_reader(pipe.reader)


async def test_each_piece_is_said_once_however_soon_the_next_wait_begins(pipe: Pipe) -> None:
    said: list[bytes] = []

    async def read(readiness: Readiness) -> None:
        while len(said) < 3:
            await readiness.wait()
            said.append(os.read(pipe.reader, 100))  # would block if nothing were there

    with Readiness(pipe.reader) as readiness:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, readiness)
            for number in range(3):
                await some_turns_of_the_loop()
                assert len(said) == number
                pipe.write(b"%d" % number)

    assert said == [b"0", b"1", b"2"]


async def test_what_came_before_the_wait_is_said(pipe: Pipe) -> None:
    pipe.write(b"early")
    with Readiness(pipe.reader) as readiness:
        await readiness.wait()
        await readiness.wait()  # it was not read

    assert os.read(pipe.reader, 100) == b"early"


async def test_the_end_is_said(pipe: Pipe) -> None:
    with Readiness(pipe.reader) as readiness:
        pipe.end()
        await readiness.wait()

    assert os.read(pipe.reader, 100) == b""


async def test_the_loop_stops_looking_while_nobody_waits_and_looks_again_for_the_next(pipe: Pipe) -> None:
    with Readiness(pipe.reader) as readiness:
        pipe.write(b"1")
        await readiness.wait()
        await some_turns_of_the_loop()
        assert not is_registered(pipe)

        await readiness.wait()
        assert os.read(pipe.reader, 100) == b"1"


async def test_between_two_waits_the_loop_keeps_looking(pipe: Pipe) -> None:
    with Readiness(pipe.reader) as readiness:
        for _ in range(3):
            pipe.write(b"1")
            await readiness.wait()
            os.read(pipe.reader, 100)
            await some_turns_of_the_loop()
        assert is_registered(pipe)


async def test_a_cancelled_wait_leaves_it_as_it_was(pipe: Pipe) -> None:
    with Readiness(pipe.reader) as readiness:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await readiness.wait()
        assert scope.cancelled_caught
        pipe.write(b"1")
        await readiness.wait()


@pytest.mark.parametrize("how", ["cancelled", "out of time"])
async def test_what_always_has_something_to_read_can_be_left_at_any_time(pipe: Pipe, how: str) -> None:
    pipe.write(b"x" * 10_000)
    read = 0

    async def cancel(scope: anyio.CancelScope) -> None:
        await some_turns_of_the_loop()
        scope.cancel()

    with Readiness(pipe.reader) as readiness:
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope(deadline=0.0 if how == "out of time" else float("inf")) as scope:
                if how == "cancelled":
                    tasks.start_soon(cancel, scope)
                for _ in range(10_000):
                    await readiness.wait()
                    read += len(os.read(pipe.reader, 1))

    assert scope.cancelled_caught
    assert read < 1_000


async def test_leaving_it_takes_the_descriptor_from_the_loop(pipe: Pipe) -> None:
    with Readiness(pipe.reader) as readiness:
        pipe.write(b"1")
        await readiness.wait()

    assert not is_registered(pipe)


@pytest.mark.skipif(sys.platform != "linux", reason="kqueue takes regular files")
async def test_what_is_always_ready_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with path.open() as opened, Readiness(opened.fileno()) as readiness:
        for _ in range(2):
            with pytest.raises(PermissionError):
                await readiness.wait()
