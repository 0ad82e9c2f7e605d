"""The points of a run: one before and one after each thing that lasts, or that another program does. Pure.

The program does nothing at these points. Tests kill a run at each of them, so this list is what "killed anywhere"
means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Step(StrEnum):
    """A point of a run. `running`: a command runs under its guardian. `staged`: written, but not yet in place."""

    FENCE_WANTED = "fence.wanted"
    FENCE_HELD = "fence.held"
    FENCE_LEAVING = "fence.leaving"

    DISCOVER_STARTING = "discover.starting"
    DISCOVER_RUNNING = "discover.running"
    DISCOVER_DONE = "discover.done"

    INSPECT_STARTING = "inspect.starting"
    INSPECT_RUNNING = "inspect.running"
    INSPECT_DONE = "inspect.done"

    PENDING_STARTING = "pending.starting"
    PENDING_STAGED = "pending.staged"
    PENDING_DONE = "pending.done"

    CHANGE_STARTING = "change.starting"
    CHANGE_RUNNING = "change.running"
    CHANGE_DONE = "change.done"

    CONFIRM_CHANGE_STARTING = "confirm_change.starting"
    CONFIRM_CHANGE_RUNNING = "confirm_change.running"
    CONFIRM_CHANGE_DONE = "confirm_change.done"

    REMOVE_STARTING = "remove.starting"
    REMOVE_RUNNING = "remove.running"
    REMOVE_DONE = "remove.done"

    CONFIRM_ABSENT_STARTING = "confirm_absent.starting"
    CONFIRM_ABSENT_RUNNING = "confirm_absent.running"
    CONFIRM_ABSENT_DONE = "confirm_absent.done"

    ADD_STARTING = "add.starting"
    ADD_RUNNING = "add.running"
    ADD_DONE = "add.done"

    CONFIRM_STARTING = "confirm.starting"
    CONFIRM_RUNNING = "confirm.running"
    CONFIRM_DONE = "confirm.done"

    OWNED_STARTING = "owned.starting"
    OWNED_STAGED = "owned.staged"
    OWNED_DONE = "owned.done"

    FORGET_STARTING = "forget.starting"
    FORGET_STAGED = "forget.staged"
    FORGET_DONE = "forget.done"

    HIDDEN_STARTING = "hidden.starting"
    HIDDEN_RUNNING = "hidden.running"
    HIDDEN_DONE = "hidden.done"

    VERIFY_STARTING = "verify.starting"
    VERIFY_RUNNING = "verify.running"
    VERIFY_DONE = "verify.done"


class Doing(StrEnum):
    """A stretch of a run; its points are `starting`, one in the middle, and `done`."""

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

    def at(self, moment: str) -> Step:
        """The point of this stretch with that name."""
        return Step(f"{self.value}.{moment}")


@dataclass(frozen=True, slots=True)
class Running:
    """The processes of a `running` point."""

    guardian: int
    command: int


OnStep: TypeAlias = Callable[[Step, Running | None], None]


def unwatched(_step: Step, _running: Running | None = None) -> None:
    """Does nothing at a point."""
