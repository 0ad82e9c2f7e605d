"""Process trees that do not want to end, and how a test sees that they have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pathlib import Path

STUBBORN = r"""
trap '' TERM
mkdir -p "$1"
sleep 1000 & echo $! > "$1/background"
(trap '' TERM; while :; do sleep 1000; done) & echo $! > "$1/deaf"
setsid sh -c 'trap "" TERM; echo $$ > "$0/own_session"; while :; do sleep 1000; done' "$1" > /dev/null 2>&1 &
(setsid sh -c 'sleep 1000 & echo $! > "$0/daemon"' "$1" > /dev/null 2>&1 &)
until [ -s "$1/own_session" ] && [ -s "$1/daemon" ]; do sleep 0.01; done
echo ready > "$1.ready"
"""
"""A shell script whose children ignore TERM, left their session, or lost their parent.

It writes their ids below `$1`, and then a line to the FIFO `$1.ready`.
"""

WAIT_S = 20.0
"""Long enough for any machine; a test that waits this long has failed."""


def processes_of(notes: Path) -> list[psutil.Process]:
    """The processes whose ids the script wrote below `notes`."""
    found = []
    for note in notes.iterdir():
        try:
            found.append(psutil.Process(int(note.read_text())))
        except (psutil.NoSuchProcess, ValueError):
            continue
    return found


def survivors(processes: list[psutil.Process], *, within_s: float = WAIT_S) -> list[psutil.Process]:
    """Those that are still alive after `within_s`; a zombie is dead."""
    _, alive = psutil.wait_procs([process for process in processes if is_alive(process)], timeout=within_s)
    return [process for process in alive if is_alive(process)]


def is_alive(process: psutil.Process) -> bool:
    """Whether this very process, not a later one with its id, still runs."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_all(processes: list[psutil.Process]) -> None:
    """End what a failing test has left."""
    for process in processes:
        if is_alive(process):
            process.kill()
