"""How much somebody may send without being asked: a burst at once, and then only so much a second. Pure."""

from __future__ import annotations


class Allowance:
    """Grows with time up to `burst`, and what arrives is taken from it.

    So a short burst does no harm and a flood does not last.
    """

    def __init__(self, burst: float, each_second: float) -> None:
        self._burst = burst
        self._each_second = each_second
        self._left = burst
        self._grown_at: float | None = None

    def grow(self, now_s: float) -> None:
        """Add what has grown until now."""
        if self._grown_at is not None:
            self._left = min(self._burst, self._left + (now_s - self._grown_at) * self._each_second)
        self._grown_at = now_s

    def take(self, size: float = 1) -> bool:
        """Take `size` if there is that much. Returns whether there was."""
        if self._left < size:
            return False
        self._left -= size
        return True
