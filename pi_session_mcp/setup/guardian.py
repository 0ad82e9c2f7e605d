"""Commands of clients, each bounded, and each under a keeper that holds the fence: its guardian.

The command has the locked description as well, at a high number, so that the fence outlives even a killed guardian for
as long as anything that the command started does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.keeper import kept
from pi_session_mcp.platform.text import path_text
from pi_session_mcp.setup.clients.base import SAID_LIMIT_BYTES, ClientOutput, CommandFailed, CommandFailure
from pi_session_mcp.setup.steps import Doing, Running, unwatched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pi_session_mcp.keeper.kept import Kept
    from pi_session_mcp.setup.clients.base import ClientCommand, Conversation
    from pi_session_mcp.setup.fence import Fence
    from pi_session_mcp.setup.steps import OnStep

COMMAND_WITHIN_S: Final = 30.0
OUTPUT_LIMIT_BYTES: Final = 1024 * 1024
FENCE_DESCRIPTOR: Final = 200
"""Where a command gets the fence: above what programs use by themselves, below the 256 that macOS allows at first."""

GONE_WITHIN_S: Final = 20.0
"""Much more than a guardian needs that is let run: within 2 s it says that it cannot tell."""

_END_OF_FILE_WITHIN_S: Final = 1.0
_CHUNK_BYTES: Final = 65_536


@dataclass(slots=True)
class Guarded:
    """Runs clients' commands; see `clients.base.Runner`. `doing` says what for, and is set before each use."""

    fence: Fence | None
    within_s: float = COMMAND_WITHIN_S
    on_step: OnStep = unwatched
    doing: Doing = Doing.DISCOVER
    gone_within_s: float = GONE_WITHIN_S

    async def run(self, command: ClientCommand) -> ClientOutput:
        """Run `command`; nothing of it runs any more when this returns. Raises `CommandFailed`.

        One exception: with `UNKNOWN_PROCESSES` nobody can tell, and the guardian goes on and keeps the fence.
        """
        self.on_step(self.doing.at("starting"), None)
        try:
            said = _Streams(command.conversation)
        except OSError:
            raise CommandFailed(CommandFailure.NOT_STARTED) from None
        try:
            keeper = self._start(command, said)
        except OSError:
            said.close()
            raise CommandFailed(CommandFailure.NOT_STARTED) from None
        timed_out = False
        try:
            with anyio.move_on_after(self.within_s) as bound:
                await self._follow(keeper, said)
            timed_out = bound.cancelled_caught
        finally:
            keeper.end()
            with anyio.CancelScope(shield=True):
                await gone(keeper, self.gone_within_s)
            said.close()
        output = _judge(keeper, said, timed_out=timed_out)
        self.on_step(self.doing.at("done"), None)
        return output

    def _start(self, command: ClientCommand, said: _Streams) -> Kept:
        held = None if self.fence is None else self.fence.descriptor
        descriptors = {} if held is None else {FENCE_DESCRIPTOR: held}
        if said.input is not None:
            descriptors[0] = said.input
        try:
            return kept.start(
                kept.Command(
                    argv=(command.argv[0], *map(path_text, command.argv[1:])),
                    environment=command.environment,
                    directory=str(command.directory),
                    grace_s=0.0,
                    descriptors=MappingProxyType(descriptors),
                    output=said.output,
                    errors=said.errors,
                    dies_with_keeper=True,
                    held=held,
                )
            )
        finally:
            said.close_theirs()

    async def _follow(self, keeper: Kept, said: _Streams) -> None:
        """Until the command has ended and its output too, or one of them is beyond its bound."""
        try:
            await keeper.started()
        except kept.CommandNotStarted:
            return
        assert keeper.command_pid is not None
        self.on_step(self.doing.at("running"), Running(keeper.pid, keeper.command_pid))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(said.read, tasks.cancel_scope)
            await keeper.over()
            # Who still writes has left the guardian's sight (macOS); it is not waited for.
            tasks.cancel_scope.deadline = anyio.current_time() + _END_OF_FILE_WITHIN_S


async def gone(keeper: Kept, within_s: float = GONE_WITHIN_S) -> None:
    """Return when a guardian that was told to end, and all under it, has ended.

    One that is stopped again and again is killed after `within_s`. The fence stays even then for as long as anything
    lives that the command started: that has it too.
    """

    async def kill_at_the_bound() -> None:
        await anyio.sleep(within_s)
        keeper.kill()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill_at_the_bound)
        await keeper.gone()
        tasks.cancel_scope.cancel()


@dataclass(slots=True)
class _Streams:
    """The streams of a command: our ends, its ends, and what came. Raises `OSError`; nothing is left open then.

    What there is to say is in the pipe before the command starts. `telling` is our end of it, as long as it is open.
    """

    conversation: Conversation | None = None
    telling: int | None = None
    input: int | None = None
    ours: list[int] = field(default_factory=list)
    theirs: list[int] = field(default_factory=list)
    said: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    is_whole: bool = False
    is_too_large: bool = False

    def __post_init__(self) -> None:
        streams = kept.open_pipes(2 if self.conversation is None else 3)
        for reading, writing in streams[:2]:
            self.ours.append(reading)
            self.theirs.append(writing)
        if self.conversation is not None:
            ((self.input, self.telling),) = streams[2:]
            self.theirs.append(self.input)
            assert len(self.conversation.says) <= SAID_LIMIT_BYTES
            os.write(self.telling, self.conversation.says)

    @property
    def output(self) -> int:
        """What the command gets as its standard output."""
        return self.theirs[0]

    @property
    def errors(self) -> int:
        """What the command gets as its standard error."""
        return self.theirs[1]

    def close_theirs(self) -> None:
        """Close our copies of the command's ends, or we would never see their end of file."""
        while self.theirs:
            os.close(self.theirs.pop())

    def close(self) -> None:
        """Close everything that is open."""
        self.close_theirs()
        self.hang_up()
        while self.ours:
            os.close(self.ours.pop())

    def hang_up(self) -> None:
        """Let the command see the end of its input."""
        if self.telling is not None:
            os.close(self.telling)
            self.telling = None

    async def read(self, scope: anyio.CancelScope) -> None:
        """Both streams to their end; cancels `scope` when they are longer than they may be."""
        async with anyio.create_task_group() as tasks:
            for descriptor, into in zip(self.ours, self.said, strict=True):
                tasks.start_soon(self._read, descriptor, into, scope)
        self.is_whole = True

    async def _read(self, descriptor: int, into: bytearray, scope: anyio.CancelScope) -> None:
        async for chunk in _chunks(descriptor):
            into += chunk
            if self.conversation is not None and self.conversation.is_over(bytes(self.said[0])):
                self.hang_up()
            if sum(map(len, self.said)) > OUTPUT_LIMIT_BYTES:
                self.is_too_large = True
                scope.cancel()


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    while True:
        await anyio.wait_readable(descriptor)
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def _judge(keeper: Kept, said: _Streams, *, timed_out: bool) -> ClientOutput:
    """The output of a command that ended by itself. Raises `CommandFailed` for every other end."""
    if keeper.unsure:
        raise CommandFailed(CommandFailure.UNKNOWN_PROCESSES)
    if said.is_too_large:
        raise CommandFailed(CommandFailure.TOO_LARGE)
    if timed_out:
        raise CommandFailed(CommandFailure.TIMEOUT)
    if keeper.command_pid is None:
        raise CommandFailed(CommandFailure.NOT_STARTED)
    if keeper.status is None or not said.is_whole:
        raise CommandFailed(CommandFailure.UNKNOWN_PROCESSES)
    stdout, stderr = (bytes(stream) for stream in said.said)
    return ClientOutput(os.waitstatus_to_exitcode(keeper.status), stdout, stderr)
