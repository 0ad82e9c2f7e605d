"""How much an external server may send without being asked: notifications, requests, answers to nothing, broken lines.

All of that is read and dropped, so it takes no memory. But reading it takes time from the other sessions. Pure.
"""

from __future__ import annotations

from typing import Final

BURST_BYTES: Final = 32 * 1024 * 1024
BYTES_EACH_SECOND: Final = 2 * 1024 * 1024
MESSAGE_BYTES: Final = 1024
"""What a message counts besides its length. So a thousand or two each second may come for ever."""
LONG_BYTES: Final = 65_536
LONG_COUNT_TIMES: Final = 4
"""How many times a line of more than `LONG_BYTES` counts: while it is parsed, no other session goes on."""
DROPPED_COUNT_ONCE_IN: Final = 8
"""Of so many bytes of a line that is too long one counts: they are dropped as they arrive, which takes less time."""


def weight(size: int) -> int:
    """What a line of so many bytes takes from the allowance."""
    return MESSAGE_BYTES + size * (LONG_COUNT_TIMES if size > LONG_BYTES else 1)
