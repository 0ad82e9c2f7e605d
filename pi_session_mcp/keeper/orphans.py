"""Ends the tree of a keeper that was killed. On Linux the tree falls to us, if we are a child subreaper.

A process that has called `adopt_orphans` may start children through keepers only: it takes every other child for an
orphan of a killed keeper and ends it. A process that has not called it ends only the command that it knows of.
"""

from __future__ import annotations

import os
import signal
from typing import Final

import anyio

from pi_session_mcp.keeper.program import TERM_TO_KILL_S
from pi_session_mcp.platform import processes

_keepers: Final[dict[int, int | None]] = {}
"""The keepers that are alive, each with the id of its command."""
_in_grace: Final[set[int]] = set()
"""Commands whose keeper was killed and that may still end by themselves."""
_adopts = False


def adopt_orphans() -> None:
    """Make this process the parent of what killed keepers leave behind (Linux), as long as it lives."""
    global _adopts  # noqa: PLW0603 - a property of the process, like the kernel's flag
    processes.become_subreaper()
    _adopts = True


def adopts() -> bool:
    """Whether what a killed keeper leaves behind becomes a child of this process."""
    return _adopts and processes.has_subreapers()


def remember_keeper(pid: int) -> None:
    """A keeper was started. It and its tree are no orphans."""
    _keepers[pid] = None


def remember_command(keeper: int, command: int) -> None:
    """The keeper has started this command."""
    _keepers[keeper] = command


def forget_keeper(pid: int) -> None:
    """The keeper has ended and was waited for."""
    _keepers.pop(pid, None)


async def end_tree(command: int, *, grace_s: float) -> None:
    """Give the command of a killed keeper its grace, then end it and every orphan. Returns when all are gone."""
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
    """End what is left of a keeper that was killed before it said what it runs. Returns when all of it is gone.

    Does nothing in a process that does not adopt orphans: it cannot know what to look for.
    """
    if _adopts:
        await _kill_until_none(None)


async def _kill_until_none(command: int | None) -> None:
    pause_s = processes.FIRST_PAUSE_S
    while alive := _orphans(command):
        for pid in alive:
            processes.send(pid, signal.SIGKILL)
        await anyio.sleep(pause_s)  # no event of the kernel says that no descendant is left
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
            while processes.is_alive(pid):  # noqa: ASYNC110 - it may not be our child, so there is no event
                await anyio.sleep(processes.FIRST_PAUSE_S)


def _orphans(command: int | None) -> list[int]:
    """What is left of the command and, if we adopt orphans, of every other killed keeper.

    A living keeper and its tree are not among it, nor is a command that has its grace.
    """
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
    """Wait for those of our adopted children that have ended."""
    for pid in children:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue
