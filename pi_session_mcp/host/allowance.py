"""How much a host may say by itself. Pure."""

from __future__ import annotations

from typing import Final

FRAMES_A_SECOND: Final = 1_000
"""Events and calls of all sessions of a host. A busy session has some in a second."""
MAX_FRAMES: Final = 10_000
"""At once, after a time of silence."""


class Allowance:
    """Grows with time and is taken frame by frame, so that a flood does not last and a burst does no harm."""

    def __init__(self) -> None:
        self._left = float(MAX_FRAMES)
        self._grown_at: float | None = None

    def grow(self, now_s: float) -> None:
        """Time has passed."""
        if self._grown_at is not None:
            self._left = min(MAX_FRAMES, self._left + (now_s - self._grown_at) * FRAMES_A_SECOND)
        self._grown_at = now_s

    def take(self) -> bool:
        """Take one frame's worth; whether there was that much."""
        if self._left < 1:
            return False
        self._left -= 1
        return True
