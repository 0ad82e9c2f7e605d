"""When the process ends, with which status, and that it ends. Standard library only.

The first reason to stop sets the exit status. A second signal of the same kind ends the process at once; so does the
watchdog, when an orderly end takes too long.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from typing import TYPE_CHECKING, Final, NoReturn

from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_STATUS: Final = {signal.SIGINT: ExitStatus.INTERRUPTED, signal.SIGTERM: ExitStatus.TERMINATED}


class Stop:
    """The decision to end. Everything here may be called from a signal handler, and takes no lock."""

    def __init__(self, within_s: float) -> None:
        self.status: int | None = None
        self._wake: Callable[[], object] = _nothing
        self._seen: set[int] = set()
        self._within_s = within_s
        self._armed, self._arm = os.pipe()

    def listen(self) -> None:
        """Take signals from now on, in whatever state the program is, and have the watchdog ready.

        The thread is started now and armed through a pipe, because starting one takes locks, which a handler must not.
        """
        threading.Thread(target=self._watch, name="shutdown-watchdog", daemon=True).start()
        for number in _STATUS:
            signal.signal(number, self._on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STATUS)  # a client may have started us with them blocked

    def on_request(self, wake: Callable[[], object]) -> None:
        """Call `wake` when the end is requested; at once if it already was. Replaces the one before."""
        self._wake = wake
        if self.status is not None:
            wake()

    def request(self, status: int) -> None:
        """Begin to end. Only the first status counts."""
        if self.status is None:
            self.status = status
            os.write(self._arm, b"\0")
        self._wake()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number in self._seen:
            end_now(self.status if self.status is not None else _STATUS[signal.Signals(number)])
        self._seen.add(number)
        self.request(_STATUS[signal.Signals(number)])

    def _watch(self) -> None:
        os.read(self._armed, 1)
        select.select([], [], [], self._within_s)
        end_now(self.status if self.status is not None else ExitStatus.FAILURE)


def end_now(status: int) -> NoReturn:
    """End this process without another line of Python: tearing down the interpreter takes ten times as long."""
    os._exit(status)


def _nothing() -> None:
    pass
