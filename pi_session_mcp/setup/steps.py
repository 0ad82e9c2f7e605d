"""The points of a run: one before and one after each thing that lasts, or that another program does. Pure.

The program does nothing at these points. Tests kill a run at each of them, so this list is what "killed anywhere"
means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

FENCE_WANTED: Final = "fence.wanted"
FENCE_HELD: Final = "fence.held"
FENCE_LEAVING: Final = "fence.leaving"


class Doing(StrEnum):
    """A stretch of a run. It has three points: `starting`, one in the middle, and `done`."""

    DISCOVER = "discover"
    INSPECT = "inspect"
    PENDING = "pending"
    CHANGE = "change"
    CONFIRM_CHANGE = "confirm_change"
    REMOVE = "remove"
    CONFIRM_ABSENT = "confirm_absent"
    ADD = "add"
    CONFIRM = "confirm"
    OWNED = "owned"
    FORGET = "forget"
    HIDDEN = "hidden"
    VERIFY = "verify"

    @property
    def middle(self) -> str:
        """`staged`: a record is written, but not yet in place. `running`: a command runs under its guardian."""
        return "staged" if self in {Doing.PENDING, Doing.OWNED, Doing.FORGET} else "running"

    def at(self, moment: str) -> str:
        """The point of this stretch with that name."""
        assert moment in {"starting", self.middle, "done"}
        return f"{self.value}.{moment}"


STEPS: Final = (
    *(FENCE_WANTED, FENCE_HELD, FENCE_LEAVING),
    *(doing.at(moment) for doing in Doing for moment in ("starting", doing.middle, "done")),
)
"""Every point of a run."""


@dataclass(frozen=True, slots=True)
class Running:
    """The processes of a `running` point."""

    guardian: int
    command: int


OnStep: TypeAlias = Callable[[str, Running | None], None]
"""Is told the name of each point, and which processes run there."""


def unwatched(_step: str, _running: Running | None = None) -> None:
    """Does nothing at a point."""
