"""One command under a keeper, seen from the process that owns it."""

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

from pi_session_mcp.keeper import orphans

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM: Final = Path(__file__).with_name("program.py")
_REPORT_BYTES: Final = 512
_INSIST_S: Final = 1.0
"""How often a keeper whose end is wanted is told so: anybody may have stopped it, and may do so again."""
_PATIENCE_S: Final = 4.0
"""Beyond the command's grace. A keeper that takes longer is ended, if its tree then falls to us."""


class CommandNotStarted(Exception):  # noqa: N818 - an expected answer of the world
    """The keeper could not start the command, or was ended before it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a keeper is to run.

    `descriptors` maps the command's descriptors to ours; ours stay open here, and their owner closes them. `output` and
    `errors` are our descriptors for its 1 and 2. After its owner is gone or lets go, the command may take `grace_s` to
    end by itself. With `dies_with_keeper` it ends as well when the keeper is killed (Linux). `held` is a descriptor of
    ours that the keeper keeps open until it is certain that nothing of the tree is alive: a lock that must not be free
    before. The command gets it only if it is among `descriptors` too.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    grace_s: float
    descriptors: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    output: int = subprocess.DEVNULL
    errors: int = subprocess.DEVNULL
    dies_with_keeper: bool = False
    held: int | None = None


_abandoned: Final[list[subprocess.Popen[bytes]]] = []
"""Keepers that go on without us, kept so that nobody takes them for forgotten."""


class Kept:
    """A started keeper. Whoever started it awaits `gone()`; until then the keeper's process id cannot be reused.

    `command_pid` is also the id of the command's process group. `error` is the errno of a command that could not be
    started. `unsure` says that a keeper with something `held` cannot read the process table: it goes on holding, and
    ending what it finds, for as long as that takes, and nobody waits for it.
    """

    def __init__(self, keeper: subprocess.Popen[bytes], lifeline: int, report: int, command: Command) -> None:
        self._keeper = keeper
        self._lifeline: int | None = lifeline
        self._report = report
        self._grace_s = command.grace_s
        self._holds = command.held is not None
        self._unwanted = anyio.Event()
        self._said = b""
        self.command_pid: int | None = None
        self.status: int | None = None
        self.error: int | None = None
        self.unsure = False

    @property
    def pid(self) -> int:
        """The keeper's own process id."""
        return self._keeper.pid

    async def started(self) -> None:
        """Wait until the command runs. Raises `CommandNotStarted`."""
        while self.command_pid is None:
            if self.unsure or not await self._hear():
                raise CommandNotStarted

    def let_go(self) -> None:
        """Give the command its grace to end by itself; then the keeper ends it. Returns at once."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
            self._unwanted.set()
            self._signal(signal.SIGCONT)

    def ask(self) -> None:
        """Have the keeper send TERM to the whole tree, once, and let the command end by itself. Returns at once.

        Only for a command that has started: before that the keeper does not take the word.
        """
        if self.command_pid is not None:
            self._signal(signal.SIGUSR1, signal.SIGCONT)

    def end(self) -> None:
        """Have the keeper end the whole tree now, without grace. Returns at once."""
        self._unwanted.set()
        self._signal(signal.SIGTERM, signal.SIGCONT)

    def kill(self) -> None:
        """End the keeper itself, which leaves its tree to us; see `gone`. Returns at once."""
        self._signal(signal.SIGKILL)

    async def over(self) -> None:
        """Wait until the keeper is gone: its command has ended, or it was killed. Or until it is `unsure`."""
        while not self.unsure and await self._hear():
            pass

    async def gone(self) -> None:
        """Return when the keeper and everything under it has ended; `status` is then what `wait` gave, if it is known.

        A keeper that was killed leaves its tree to us: it gets its grace and is then swept. One that is stopped does
        not hold us up. Must be awaited to its end: shield it.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._insist)
                await self.over()
                tasks.cancel_scope.cancel()
        finally:
            anyio.notify_closing(self._report)
            os.close(self._report)
            self.let_go()
        if self.unsure:
            _abandoned.append(self._keeper)
            return
        self._keeper.wait()  # its report ends as it exits: this does not block
        orphans.forget_keeper(self.pid)
        if self.status is None and self.command_pid is not None:
            await orphans.end_tree(self.command_pid, grace_s=self._grace_s)
        elif self.status is None and self.error is None:
            await orphans.end_strays()  # killed before it could say what it had started

    async def _insist(self) -> None:
        """Once its end is wanted, do not let a stopped keeper stay stopped, and end one that never comes to an end.

        One that holds something is not ended: that must not be free before the tree is gone.
        """
        await self._unwanted.wait()
        with anyio.move_on_after(self._grace_s + _PATIENCE_S):
            await self._resume_until_over()
        if orphans.adopts() and not self._holds:
            self._grace_s = 0.0  # it is over
            self._signal(signal.SIGKILL)
        else:
            self._signal(signal.SIGTERM)
            await self._resume_until_over()

    async def _resume_until_over(self) -> None:
        while True:
            self._signal(signal.SIGCONT)
            await anyio.sleep(_INSIST_S)  # there is an event for "it was stopped", but none that reaches us in time

    def _signal(self, *numbers: signal.Signals) -> None:
        for number in numbers:
            if self._keeper.returncode is None:
                self._keeper.send_signal(number)

    async def _hear(self) -> bool:
        await anyio.wait_readable(self._report)
        said = os.read(self._report, _REPORT_BYTES)
        self._said += said
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            self._note(line.decode("ascii", "replace").split())
        return bool(said)

    def _note(self, words: list[str]) -> None:
        match words:
            case ["started", pid, _group, _start]:
                self.command_pid = int(pid)
                orphans.remember_command(self.pid, self.command_pid)
            case ["ended", status]:
                self.status = int(status)
            case ["failed", number]:
                self.error = int(number)
            case ["unknown"]:
                self.unsure = True
            case _:
                pass


def open_pipes(count: int) -> list[tuple[int, int]]:
    """So many pipes, each as its reading and its writing end. Raises `OSError`; nothing is left open then."""
    made: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            made.append(os.pipe())  # noqa: PERF401 - what was made before the last one failed must be known
    except OSError:
        for descriptor in (end for pair in made for end in pair):
            os.close(descriptor)
        raise
    return made


def start(command: Command) -> Kept:
    """Start a keeper for `command`. Returns as soon as the keeper's process exists; see `Kept.started`.

    Raises `OSError`; nothing is left open then.
    """
    (lifeline_end, lifeline), (report, report_end) = open_pipes(2)
    words = ",".join(f"{theirs}={ours}" for theirs, ours in command.descriptors.items()) or "-"
    held = -1 if command.held is None else command.held
    options = (lifeline_end, report_end, round(command.grace_s * 1000), int(command.dies_with_keeper), held, words)
    inherited = {lifeline_end, report_end, *command.descriptors.values(), *([] if command.held is None else [held])}
    try:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM), *map(str, options), "--", *command.argv],
            stdin=subprocess.DEVNULL,
            stdout=command.output,
            stderr=command.errors,
            env=dict(command.environment),
            cwd=command.directory,
            pass_fds=tuple(inherited),
            start_new_session=True,  # before exec, so that a signal to our group cannot hit it in between
        )
    except BaseException:
        os.close(lifeline)
        os.close(report)
        raise
    finally:
        os.close(lifeline_end)
        os.close(report_end)
    orphans.remember_keeper(keeper.pid)
    return Kept(keeper, lifeline, report, command)
