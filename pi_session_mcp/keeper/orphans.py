"""What is left when a keeper was killed: on Linux its tree falls to us, if we are a child subreaper.

A process that adopts (`adopt_orphans`) may start children only through keepers: every other child that it finds is an
orphan of a killed keeper and is ended. Processes that do not adopt end just the command that they know.
"""

from __future__ import annotations

import os
import signal
from typing import Final

import anyio

from pi_session_mcp.keeper.program import TERM_TO_KILL_S
from pi_session_mcp.platform import processes

_keepers: Final[dict[int, int | None]] = {}
"""Living keepers, and the command of each."""
_in_grace: Final[set[int]] = set()
"""Commands of killed keepers that still have their grace."""
_adopts = False


def adopt_orphans() -> None:
    """Make this process the new parent of what killed keepers leave behind (Linux). For the process's whole life."""
    global _adopts  # noqa: PLW0603 - a property of the process, like the kernel's flag
    processes.become_subreaper()
    _adopts = True


def adopts() -> bool:
    """Whether what a killed keeper leaves behind falls to this process."""
    return _adopts and processes.has_subreapers()


def remember_keeper(pid: int) -> None:
    """A keeper lives: it and its tree are not orphans."""
    _keepers[pid] = None


def remember_command(keeper: int, command: int) -> None:
    """The keeper runs this command."""
    _keepers[keeper] = command


def forget_keeper(pid: int) -> None:
    """The keeper is gone and reaped."""
    _keepers.pop(pid, None)


async def end_tree(command: int, *, grace_s: float) -> None:
    """Let the command of a killed keeper have its grace, then end it and every orphan; return when all are gone."""
    _in_grace.add(command)
    try:
        await _wait_for_exit(command, grace_s)
    finally:
        _in_grace.discard(command)
    for pid in _orphans(command):
        processes.ask_to_end(pid)
    await _wait_for_exit(command, TERM_TO_KILL_S)
    await _kill_until_none(command)


async def end_strays() -> None:
    """End what a keeper left that was killed before it told what it runs; return when all is gone.

    Nothing happens in a process that does not adopt: it could not know what to look for.
    """
    if _adopts:
        await _kill_until_none(None)


async def _kill_until_none(command: int | None) -> None:
    pause_s = processes.FIRST_PAUSE_S
    while alive := _orphans(command):
        for pid in alive:
            processes.send(pid, signal.SIGKILL)
        await anyio.sleep(pause_s)  # the kernel has no event for "no descendant is left"
        pause_s = min(pause_s * 2, processes.LONGEST_PAUSE_S)


async def _wait_for_exit(pid: int, seconds: float) -> None:
    """Return when the process has ended, or after `seconds`."""
    with anyio.move_on_after(seconds):
        if hasattr(os, "pidfd_open"):
            try:
                descriptor = os.pidfd_open(pid)
            except OSError:
                return
            try:
                await anyio.wait_readable(descriptor)
            finally:
                anyio.notify_closing(descriptor)
                os.close(descriptor)
        else:
            while processes.is_alive(pid):  # noqa: ASYNC110 - our orphans are not all our children
                await anyio.sleep(processes.FIRST_PAUSE_S)  # not our child, so there is no event to wait for


def _orphans(command: int | None) -> list[int]:
    """The command and, if we adopt, every process below us that no living keeper and no grace covers."""
    try:
        rows = processes.scan()
    except (OSError, ValueError):
        return [command] if command is not None and processes.is_alive(command) else []
    if not _adopts:
        return [row.pid for row in rows if command in (row.pid, row.group) and not row.ended]
    me = os.getpid()
    covered = {*_keepers, *_in_grace}
    adopted = {row.pid for row in rows if row.parent == me and row.pid not in covered}
    _reap(adopted)
    tree = {row.pid for row in processes.below(rows, adopted)} | adopted
    return [pid for pid in tree if pid not in covered and processes.is_alive(pid)]


def _reap(children: set[int]) -> None:
    """Collect those of our adopted children that have ended."""
    for pid in children:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue
