"""Clients that are ended by a signal, and what is left of them and of everything below them."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from typing import Final

import psutil

from acceptance.processes import Started, living

_LOOK_EVERY_S: Final = 0.1
_GRACE_S: Final = 15.0


class StartedClient(Started):
    """A client in a session of its own; leaving the block ends it."""

    def end(self, name: str) -> None:
        """Send it alone, and nothing that it started, this signal."""
        self._process.send_signal(signal.Signals[name])


def left_of(canary: str, *, within_s: float) -> list[psutil.Process]:
    """The processes of this home that are still there after `within_s`."""
    deadline = time.monotonic() + within_s
    while (found := _of(canary)) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    return found


def end_all(canary: str) -> None:
    """End every process of this home: ours, since nobody else knows the canary."""
    for process in left_of(canary, within_s=_GRACE_S):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    left_of(canary, within_s=_GRACE_S)


def _of(canary: str) -> list[psutil.Process]:
    """By any variable: Codex gives a server few of its own, but its home and our configuration are among them."""
    return living(lambda environ: canary in "".join(environ.values()))
