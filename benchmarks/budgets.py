"""What the server may cost, and whether it does. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.figures import FIGURES, Samples, difference, ratio


@dataclass(frozen=True, slots=True)
class Times:
    """At most so many times the other server's figure."""

    limit: float


@dataclass(frozen=True, slots=True)
class Above:
    """At most so much more than the other server's figure, in the figure's unit."""

    limit: float


@dataclass(frozen=True, slots=True)
class Absolute:
    """At most this, in the figure's unit, whatever another server takes."""

    limit: float


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget of the specification."""

    what: str
    key: str
    bound: Times | Above | Absolute


BUDGETS: Final = (
    Budget("spawn → `initialize` and `tools/list` answered", "listed", Times(0.25)),
    Budget("CPU until then", "listed_cpu", Absolute(250)),
    Budget("first call of a tool, once idle", "first_call", Absolute(150)),
    Budget("memory after `tools/list`, idle", "idle_pss", Times(0.2)),
    Budget("spawn → first turn done, client asking at once", "first_turn_done", Times(0.7)),
    Budget("warm session start", "warm_start_p50", Above(10)),
    Budget("a turn, as a waiter sees it, median", "turn_p50", Above(3)),
    Budget("`pi_turn_get` round trip, median", "get_p50", Absolute(500)),
    Budget("memory of 50 sessions", "sessions_50_pss", Times(1.25)),
    Budget("50 sessions × 4 turns", "delegation", Times(1.2)),  # noqa: RUF001 - the sign is meant
    Budget("stdin closed → server gone, no session", "gone_0", Absolute(200)),
    Budget("stdin closed → server gone, 10 sessions", "gone_10", Absolute(200)),
    Budget("stdin closed → last process gone, 10 sessions", "last_10", Absolute(6000)),
    Budget("wake-ups of the idle server process", "wakeups", Absolute(0)),
    Budget("wake-ups of all processes, 5 idle sessions", "tree_wakeups", Absolute(1)),
    Budget("CPU of all processes in 10 s, 5 idle sessions", "idle_cpu", Absolute(10)),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A budget beside what was measured; both in `unit`. `measured` is `None` when it could not be measured."""

    budget: Budget
    measured: float | None
    limit: float
    unit: str

    @property
    def met(self) -> bool | None:
        """Whether the budget is kept; `None` when that is not known."""
        return None if self.measured is None else self.measured <= self.limit

    @property
    def share(self) -> float | None:
        """What is measured as a part of what is allowed; `None` when nothing is allowed, or when it is not known."""
        return self.measured / self.limit if self.measured is not None and self.limit else None


def judge(budget: Budget, ours: Samples, theirs: Samples | None) -> Verdict:
    """The verdict on one budget. Without another server, ratios and differences are not known."""
    unit = FIGURES[budget.key].unit
    match budget.bound:
        case Absolute(limit):
            return Verdict(budget, ours.value(budget.key), limit, unit)
        case Above(limit):
            more = None if theirs is None else difference(ours, theirs, budget.key)
            return Verdict(budget, more, limit, f"{unit} more")
        case Times(limit):
            times = None if theirs is None else ratio(ours, theirs, budget.key)
            return Verdict(budget, times, limit, "×")  # noqa: RUF001 - the sign is meant


def judge_all(ours: Samples, theirs: Samples | None) -> list[Verdict]:
    """The verdict on every budget, in the order of the specification."""
    return [judge(budget, ours, theirs) for budget in BUDGETS]


__all__ = ["BUDGETS", "Above", "Absolute", "Budget", "Times", "Verdict", "judge", "judge_all"]
