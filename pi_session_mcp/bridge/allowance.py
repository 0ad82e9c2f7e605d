"""How much an external server may say unasked: notifications, requests, answers to nothing, what is no message. Pure.

All of that is read and dropped, so it takes no memory; but reading it takes the time of a process that others share.
"""

from __future__ import annotations

from typing import Final

BURST_BYTES: Final = 32 * 1024 * 1024
BYTES_EACH_SECOND: Final = 2 * 1024 * 1024
MESSAGE_BYTES: Final = 1024
"""What a message counts for beside its length. So a thousand or two each second may come for ever."""
LONG_BYTES: Final = 65_536
LONG_COUNT_TIMES: Final = 4
"""A line that is longer than `LONG_BYTES` counts so many times, since it is read in one go, while everybody waits."""
DROPPED_COUNT_ONCE_IN: Final = 8
"""Bytes of a line that is too long are dropped as they arrive, which takes less time."""


def weight(size: int) -> int:
    """What a line of so many bytes takes from the bucket."""
    return MESSAGE_BYTES + size * (LONG_COUNT_TIMES if size > LONG_BYTES else 1)


class Allowance:
    """A bucket that fills with time and that what comes unasked takes from."""

    def __init__(self, now: float) -> None:
        self._left = float(BURST_BYTES)
        self._at = now

    def take(self, size: int, now: float) -> bool:
        """Take so many bytes; whether there were as many."""
        self._left = min(BURST_BYTES, self._left + (now - self._at) * BYTES_EACH_SECOND) - size
        self._at = now
        return self._left >= 0
