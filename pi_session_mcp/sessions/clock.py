"""Timestamps that never go backwards. Pure: the wall clock is given."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wall_clock() -> datetime:
    """The time now."""
    return datetime.now(UTC)


class Clock:
    """Reads a wall clock. If the clock is set back, the time stands still until the clock has caught up."""

    def __init__(self, wall: Callable[[], datetime] = wall_clock) -> None:
        self._wall = wall
        self._latest = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """The time in UTC, never before an earlier reading."""
        self._latest = max(self._latest, self._wall().astimezone(UTC))
        return self._latest


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
