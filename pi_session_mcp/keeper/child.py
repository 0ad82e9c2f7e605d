"""One command under a keeper, seen from the process that started it.

`running.py` has the blocks that own a child. Nothing else starts one, except for the host that is started early.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.keeper import orphans
from pi_session_mcp.keeper.pipes import ERRORS, INPUT, OUTPUT, Pipes
from pi_session_mcp.platform.lines import LineSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

PROGRAM: Final = Path(__file__).with_name("program.py")
_LIFELINE: Final = 0
_REPORT: Final = 1
_CHUNK_BYTES: Final = 65_536


class CommandNotStarted(Exception):  # noqa: N818 - an expected answer of the world
    """The keeper could not start the command, or was ended before it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a keeper is to run.

    `streams` are those of the command's descriptors 0, 1 and 2 that are pipes to us; the others are /dev/null.
    `descriptors` maps further descriptors of the command to ours, which their owner closes. When its owner is gone or
    lets go, the command has `grace_s` to end by itself. A keeper that then needs `patience_s` more is killed, if
    something else can end its tree. With `dies_with_keeper` the command is killed when its keeper is (Linux). `held` is
    a descriptor of ours that the keeper keeps open until nothing of the tree is alive: that of a lock which must not be
    free before. The command gets it only if it is among `descriptors` as well.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    grace_s: float = 0.0
    patience_s: float = DEADLINES.keeper_patience_s
    streams: tuple[int, ...] = ()
    descriptors: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    dies_with_keeper: bool = False
    held: int | None = None


_abandoned: Final[list[subprocess.Popen[bytes]]] = []
"""Keepers that go on without us. They are kept here because Python warns of a process that was forgotten."""


class Child:
    """A started keeper with its command, and our ends of the command's streams.

    `command_pid` is also the id of the command's process group. `exit_code` is the command's, if it is known; a
    negative number is a signal. `error` is the errno of a command that could not be started. `unsure` says that a
    keeper with something `held` cannot read the process table: it goes on holding, and ending what it finds, and we do
    not wait for it.
    """

    def __init__(self, keeper: subprocess.Popen[bytes], link: Pipes, streams: Pipes, command: Command) -> None:
        self._keeper = keeper
        self._link = link
        self._streams = streams
        self._command = command
        self._grace_s = command.grace_s
        self._unwanted = anyio.Event()
        self._gone = False
        self._said = LineSplitter(_CHUNK_BYTES)
        self.command_pid: int | None = None
        self.exit_code: int | None = None
        self.error: int | None = None
        self.unsure = False

    @property
    def pid(self) -> int:
        """The keeper's own process id. It is not used again before `gone` has returned."""
        return self._keeper.pid

    # --- its streams -------------------------------------------------------------------------------------------------

    async def read(self, stream: int = OUTPUT) -> bytes:
        """What the command has written to a stream; empty at its end."""
        descriptor = self._streams.ours[stream]
        await anyio.wait_readable(descriptor)
        return os.read(descriptor, _CHUNK_BYTES)

    async def chunks(self, stream: int) -> AsyncIterator[bytes]:
        """What the command writes to a stream, until its end."""
        while chunk := await self.read(stream):
            yield chunk

    async def write(self, data: bytes) -> None:
        """Write to the command's input; waits while the command does not read. Raises `OSError` when it is closed."""
        rest = memoryview(data)
        while rest:
            descriptor = self._streams.ours.get(INPUT)
            if descriptor is None:
                raise BrokenPipeError
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(descriptor)

    def hang_up(self) -> None:
        """Close the command's input, so that it reads its end."""
        self._streams.close_ours(INPUT)

    def close(self) -> None:
        """Close our ends of every stream."""
        self._streams.close()

    # --- its life ----------------------------------------------------------------------------------------------------

    async def started(self) -> None:
        """Wait until the command runs. Raises `CommandNotStarted`."""
        while self.command_pid is None:
            if self.unsure or not await self._hear():
                raise CommandNotStarted

    def let_go(self) -> None:
        """Give the command its grace to end by itself; then the keeper ends it. Returns at once."""
        self._link.close_ours(_LIFELINE)
        self._unwanted.set()
        self._signal(signal.SIGCONT)

    def ask(self) -> None:
        """Have the keeper send TERM to the whole tree, once, and let the command end by itself. Returns at once.

        Does nothing before the command has started: the keeper takes this request only then.
        """
        if self.command_pid is not None:
            self._signal(signal.SIGUSR1, signal.SIGCONT)

    def end(self) -> None:
        """Have the keeper end the whole tree now, without grace. Returns at once."""
        self._unwanted.set()
        self._signal(signal.SIGTERM, signal.SIGCONT)

    async def over(self) -> None:
        """Wait until the keeper has ended, since its command has or since it was killed; or until it is `unsure`."""
        while not self.unsure and await self._hear():
            pass

    async def gone(self) -> None:
        """Return when the keeper and everything below it has ended; `exit_code` is known then, if it ever is.

        A keeper that was killed leaves its tree to us: the command has its grace, and then the tree is ended. Shield
        this: it must be awaited to its end. A second time it returns at once.
        """
        if self._gone:
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._insist)
            await self.over()
            tasks.cancel_scope.cancel()
        self._gone = True
        self.let_go()
        self._link.close()
        if self.unsure:
            _abandoned.append(self._keeper)
            return
        self._keeper.wait()  # its report ends when it exits, so this does not block
        orphans.forget_keeper(self.pid)
        if self.exit_code is None and self.command_pid is not None:
            await orphans.end_tree(self.command_pid, grace_s=self._grace_s)
        elif self.exit_code is None and self.error is None:
            await orphans.end_strays()  # it was killed before it could say what it had started

    async def _insist(self) -> None:
        """Once the end is wanted, let no stopped keeper stay stopped, and kill a keeper that takes too long.

        It is killed if its tree then falls to us, or if it holds something: the command has that too, so it is not
        free before the tree is gone.
        """
        await self._unwanted.wait()
        with anyio.move_on_after(self._grace_s + self._command.patience_s):
            await self._resume_until_over()
        if orphans.adopts() or self._command.held is not None:
            self._grace_s = 0.0  # it has passed
            self._signal(signal.SIGKILL)
        else:
            self._signal(signal.SIGTERM)
            await self._resume_until_over()

    async def _resume_until_over(self) -> None:
        while True:
            self._signal(signal.SIGCONT)
            # There is an event for "it was stopped", but none that reaches us in time.
            await anyio.sleep(DEADLINES.keeper_insist_s)

    def _signal(self, *numbers: signal.Signals) -> None:
        for number in numbers:
            if self._keeper.returncode is None:
                self._keeper.send_signal(number)

    async def _hear(self) -> bool:
        await anyio.wait_readable(self._link.ours[_REPORT])
        said = os.read(self._link.ours[_REPORT], _CHUNK_BYTES)
        for line in self._said.feed(said):
            self._note(line.decode("ascii", "replace").split())
        return bool(said)

    def _note(self, words: list[str]) -> None:
        match words:
            case ["started", pid, _group, _start]:
                self.command_pid = int(pid)
                orphans.remember_command(self.pid, self.command_pid)
            case ["ended", status]:
                self.exit_code = os.waitstatus_to_exitcode(int(status))
            case ["failed", number]:
                self.error = int(number)
            case ["unknown"]:
                self.unsure = True
            case _:
                pass


def start(command: Command) -> Child:
    """Start a keeper for `command`. Returns as soon as the keeper's process exists; see `Child.started`.

    Give the child to `running.owned` before anything else can fail. Raises `OSError`; nothing is left open then.
    """
    streams = Pipes(command.streams)
    try:
        link = Pipes((_LIFELINE, _REPORT), to_child=(_LIFELINE,))
        try:
            keeper = _start_keeper(command, link.theirs, streams.theirs)
        except BaseException:
            link.close()
            raise
        link.close_theirs()
    except BaseException:
        streams.close()
        raise
    streams.close_theirs()
    orphans.remember_keeper(keeper.pid)
    return Child(keeper, link, streams, command)


def _start_keeper(command: Command, link: Mapping[int, int], streams: Mapping[int, int]) -> subprocess.Popen[bytes]:
    held = -1 if command.held is None else command.held
    moved = {**command.descriptors, **({INPUT: streams[INPUT]} if INPUT in streams else {})}
    words = ",".join(f"{theirs}={ours}" for theirs, ours in moved.items()) or "-"
    options = (
        link[_LIFELINE],
        link[_REPORT],
        round(command.grace_s * 1000),
        int(command.dies_with_keeper),
        held,
        words,
    )
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(PROGRAM), *map(str, options), "--", *command.argv],
        stdin=subprocess.DEVNULL,
        stdout=streams.get(OUTPUT, subprocess.DEVNULL),
        stderr=streams.get(ERRORS, subprocess.DEVNULL),
        env=dict(command.environment),
        cwd=command.directory,
        pass_fds={*link.values(), *moved.values(), *([] if command.held is None else [held])},
        start_new_session=True,  # before exec, so that a signal to our group cannot reach it in between
    )
