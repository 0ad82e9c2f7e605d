"""The owners of a child: a block that ends it for certain, and a run from start to end within bounds."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.keeper import child
from pi_session_mcp.keeper.child import CommandNotStarted
from pi_session_mcp.keeper.pipes import ERRORS, INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pi_session_mcp.keeper.child import Child, Command


@asynccontextmanager
async def owned(started: Child) -> AsyncIterator[Child]:
    """Own a child that was started before. When the block is left, it and everything it started has ended.

    Our ends of its streams are closed then, too. One exception: a keeper that is `unsure` goes on by itself.
    """
    try:
        yield started
    finally:
        started.end()
        with anyio.CancelScope(shield=True):
            try:
                await started.gone()
            finally:
                started.close()


@asynccontextmanager
async def running(command: Command) -> AsyncIterator[Child]:
    """Start a child and own it. Raises `OSError` when it cannot be started; nothing is left open then."""
    async with owned(child.start(command)) as started:
        yield started


class End(Enum):
    """How a run came to its end."""

    BY_ITSELF = auto()
    NOT_STARTED = auto()
    TIMED_OUT = auto()
    TOO_LARGE = auto()
    UNKNOWN = auto()
    """It is not known whether something of it still runs, or what it wrote is not whole."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that was run. Only with `End.BY_ITSELF` an exit code is known and what it wrote is whole."""

    end: End
    exit_code: int | None = None
    output: bytes = b""
    errors: bytes = b""

    @property
    def well(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.end is End.BY_ITSELF and self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Input:
    """What a command is told on its standard input, which is closed as soon as `is_over` says so of its output.

    `says` is a few lines: it must fit into the buffer of a pipe.
    """

    says: bytes
    is_over: Callable[[bytes], bool]


async def run(
    command: Command,
    *,
    within_s: float,
    max_bytes: int,
    told: Input | None = None,
    on_started: Callable[[Child], None] = lambda _started: None,
) -> Ended:
    """Run a command to its end, and collect what it writes to the streams that are pipes, `max_bytes` in all.

    Nothing of it runs any more when this returns, unless the end is `UNKNOWN`.
    """
    try:
        started = child.start(command)
    except OSError:
        return Ended(End.NOT_STARTED)
    seen = _Seen(started, max_bytes, told)
    async with owned(started):
        with anyio.move_on_after(within_s) as bound, suppress(CommandNotStarted):
            await started.started()
            await seen.tell()
            on_started(started)
            await seen.follow([stream for stream in command.streams if stream != INPUT])
    return seen.judged(timed_out=bound.cancelled_caught)


@dataclass(slots=True)
class _Seen:
    child: Child
    max_bytes: int
    told: Input | None
    said: dict[int, bytearray] = field(default_factory=dict)
    is_whole: bool = False
    is_too_large: bool = False

    async def follow(self, streams: list[int]) -> None:
        """Until the command and its output have ended, or it has written too much."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_all, streams, tasks.cancel_scope)
            await self.child.over()
            # A process that still has the stream is out of the keeper's sight (macOS); we do not wait for it.
            tasks.cancel_scope.deadline = anyio.current_time() + DEADLINES.end_of_file_s

    async def _read_all(self, streams: list[int], scope: anyio.CancelScope) -> None:
        async with anyio.create_task_group() as tasks:
            for stream in streams:
                tasks.start_soon(self._read, stream, scope)
        self.is_whole = True

    async def _read(self, stream: int, scope: anyio.CancelScope) -> None:
        said = self.said.setdefault(stream, bytearray())
        async for chunk in self.child.chunks(stream):
            said += chunk
            if self.told is not None and stream == OUTPUT and self.told.is_over(bytes(said)):
                self.child.hang_up()
            if sum(map(len, self.said.values())) > self.max_bytes:
                self.is_too_large = True
                scope.cancel()

    async def tell(self) -> None:
        """Write the input, which the pipe has room for: the command need not read any of it yet."""
        if self.told is not None:
            with suppress(OSError):  # it does not listen, and its answer will show that
                await self.child.write(self.told.says)

    def judged(self, *, timed_out: bool) -> Ended:
        """What to say of the command that was run."""
        if self.child.unsure:
            return Ended(End.UNKNOWN)
        if self.is_too_large:
            return Ended(End.TOO_LARGE)
        if timed_out:
            return Ended(End.TIMED_OUT)
        if self.child.command_pid is None:
            return Ended(End.NOT_STARTED)
        if self.child.exit_code is None or not self.is_whole:
            return Ended(End.UNKNOWN)
        output, errors = (bytes(self.said.get(stream, b"")) for stream in (OUTPUT, ERRORS))
        return Ended(End.BY_ITSELF, self.child.exit_code, output, errors)
