"""stdout carries MCP frames and nothing else, at the level of the descriptor. Standard library only.

`seize` moves the client's descriptors to private numbers that no child inherits, and puts something harmless in their
old places: whatever prints, here or in a child, reaches a pipe that a thread empties. What came is counted, never kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from pi_session_mcp.deadlines import DEADLINES

if TYPE_CHECKING:
    from pi_session_mcp.diagnostics import Report

_READ_SIZE: Final = 64 * 1024
_READS: Final = 16
"""In one turn, so that an endless flood does not keep the thread from saying so, nor the process from ending."""


class Seized(NamedTuple):
    """Private duplicates of what the process was started with; `None` where there was nothing."""

    stdin: int | None
    stdout: int | None
    stderr: int | None
    foreign: int
    """Where everything that is written to descriptor 1 from now on can be read."""


def seize() -> Seized:
    """Take descriptors 0, 1 and 2 away from everybody else. Call it once, before anything can print."""
    stdin, stdout, stderr = (_private(fd) for fd in (0, 1, 2))
    _replace(0, _above_standard(os.open(os.devnull, os.O_RDONLY)))
    _replace(2, _above_standard(os.open(os.devnull, os.O_WRONLY)))
    foreign, entrance = map(_above_standard, os.pipe())
    _replace(1, entrance)
    return Seized(stdin, stdout, stderr, foreign)


def _private(fd: int) -> int | None:
    """A duplicate that cannot land among the standard ones and that `exec` closes."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:
        return None


def _above_standard(fd: int) -> int:
    """The same open file under a number above 2: in a process started without stdin, `open` hands out 0."""
    if fd > 2:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _replace(fd: int, by: int) -> None:
    os.dup2(by, fd, inheritable=True)
    os.close(by)


class StdoutGuard:
    """Counts what did not belong on stdout and says so, at most once in `interval_s` and once at the end.

    `count` may be called from any thread.
    """

    def __init__(self, foreign: int, report: Report, interval_s: float = DEADLINES.report_interval_s) -> None:
        self._foreign = foreign
        self._interval_s = interval_s
        os.set_blocking(foreign, False)  # two threads read it at the end; it is ours alone
        self._report = report
        self._lock = threading.Lock()
        self._bytes = 0
        self._writes = 0
        self._said_at: float | None = None
        self._finished = False
        self._wake_read, self._wake_write = os.pipe()

    def start(self) -> None:
        """Empty the pipe from now on, also while the event loop is busy."""
        threading.Thread(target=self._drain, name="stdout-guard", daemon=True).start()

    def count(self, byte_count: int, writes: int) -> None:
        """Add what was suppressed elsewhere, for example on a host's stdout."""
        with self._lock:
            quiet = not self._writes
            self._bytes += byte_count
            self._writes += writes
        if quiet and writes:
            os.write(self._wake_write, b"\0")

    def finish(self) -> None:
        """Say what has not been said yet. The last call."""
        if sys.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
        self._read_foreign()
        with self._lock:
            self._finished = True
        self._say()

    def _drain(self) -> None:
        poller = select.poll()
        poller.register(self._foreign, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        while not self._finished:
            ready = dict(poller.poll(self._silence_left_ms()))
            if self._wake_read in ready:
                os.read(self._wake_read, _READ_SIZE)
            if self._foreign in ready and not self._read_foreign():
                poller.unregister(self._foreign)  # somebody closed descriptor 1; polling on would never wait
            if self._silence_left_ms() == 0 and not self._finished:
                self._say()

    def _silence_left_ms(self) -> float | None:
        """How long to stay silent: `None` while there is nothing to say, so that an idle server sleeps."""
        with self._lock:
            if not self._writes:
                return None
            if self._said_at is None:
                return 0
            return max(0.0, self._said_at + self._interval_s - monotonic()) * 1000

    def _read_foreign(self) -> bool:
        """Count what is there now, or as much of it as one turn may take; whether more can come."""
        for _ in range(_READS):
            try:
                size = len(os.read(self._foreign, _READ_SIZE))
            except BlockingIOError:
                return True
            if not size:
                return False
            with self._lock:  # for the counting only: `count` is called by the event loop
                self._bytes += size
                self._writes += 1
        return True

    def _say(self) -> None:
        from pi_session_mcp.diagnostics import Diagnostic, Event

        with self._lock:
            byte_count, writes = self._bytes, self._writes
            self._bytes = self._writes = 0
            self._said_at = monotonic()
        if writes:
            event = Event.FOREIGN_STDOUT_SUPPRESSED
            self._report(Diagnostic(level="warning", event=event, bytes=byte_count, writes=writes))
