"""What is measured: the figures with their names and units, and how several rounds become one value. Pure."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Unit(StrEnum):
    """The unit of a figure, as printed."""

    MS = "ms"
    US = "µs"
    MIB = "MiB"
    PER_SECOND = "a second"
    COUNT = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that is measured: its key in the JSON, and its line in the table."""

    key: str
    label: str
    unit: Unit


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the table."""

    title: str
    figures: tuple[Figure, ...]


SECTIONS: Final = (
    Section(
        "Handshake, from the spawn",
        (
            Figure("initialized", "`initialize` answered", Unit.MS),
            Figure("listed", "`tools/list` answered", Unit.MS),
            Figure("listed_cpu", "CPU until then, all processes", Unit.MS),
            Figure("settled_cpu", "CPU until idle, all processes", Unit.MS),
            Figure("first_call", "first call of a tool, once idle", Unit.MS),
        ),
    ),
    Section(
        "Memory of all processes",
        (
            Figure("idle_pss", "after `tools/list`, idle, PSS", Unit.MIB),
            Figure("idle_rss", "the same, RSS", Unit.MIB),
            Figure("sessions_1_pss", "1 session, PSS", Unit.MIB),
            Figure("sessions_1_rss", "the same, RSS", Unit.MIB),
            Figure("sessions_10_pss", "10 sessions, PSS", Unit.MIB),
            Figure("sessions_50_pss", "50 sessions, PSS", Unit.MIB),
            Figure("sessions_50_rss", "the same, RSS", Unit.MIB),
            Figure("worked_pss", "50 sessions after their turns, PSS", Unit.MIB),
        ),
    ),
    Section(
        "Sessions and turns, instant model",
        (
            Figure("first_session", "spawn → first session ready", Unit.MS),
            Figure("first_turn_done", "spawn → first turn done", Unit.MS),
            Figure("cold_start", "session start, first in an idle server", Unit.MS),
            Figure("warm_start_p50", "session start, later, p50", Unit.MS),
            Figure("warm_start_p99", "session start, later, p99", Unit.MS),
            Figure("first_turn", "first turn", Unit.MS),
            Figure("turn_p50", "later turns, p50", Unit.MS),
            Figure("turn_p99", "later turns, p99", Unit.MS),
            Figure("turn_overhead", "later turns, p50, above the bare SDK's", Unit.MS),
            Figure("get_p50", "`pi_turn_get`, p50", Unit.US),
            Figure("get_p99", "`pi_turn_get`, p99", Unit.US),
            Figure("in_flight", "`pi_turn_get`, 64 in flight", Unit.PER_SECOND),
        ),
    ),
    Section(
        "50 sessions",
        (
            Figure("concurrent", "50 first turns at once, instant model", Unit.MS),
            Figure("delegation", "50 × 4 turns, model 50 ms", Unit.MS),  # noqa: RUF001 - the sign is meant
        ),
    ),
    Section(
        "End, from the closing of stdin",
        (
            Figure("gone_0", "no session: server gone", Unit.MS),
            Figure("last_0", "no session: last process gone", Unit.MS),
            Figure("gone_10", "10 sessions: server gone", Unit.MS),
            Figure("last_10", "10 sessions: last process gone", Unit.MS),
            Figure("left", "processes left after 10 s", Unit.COUNT),
        ),
    ),
    Section(
        "Idle with 5 sessions",
        (
            Figure("wakeups", "wake-ups of the server process", Unit.PER_SECOND),
            Figure("tree_wakeups", "wake-ups of all processes", Unit.PER_SECOND),
            Figure("idle_cpu", "CPU of all processes in 10 s", Unit.MS),
        ),
    ),
)

COUNTS: Final = (1, 10, 50, 100, 250)
"""How many sessions are open when many are looked at. A server may hold 256 (`limits.maxSessions`)."""


def _by_count(title: str, key: str, unit: Unit, counts: Sequence[int] = COUNTS) -> Section:
    """A section with one figure for each number of open sessions."""
    return Section(title, tuple(Figure(many_key(count, key), _sessions(count), unit) for count in counts))


def many_key(count: int, key: str) -> str:
    """The key of a figure that is measured with so many sessions open."""
    return f"many_{count}_{key}"


def _sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"


MANY: Final = (
    _by_count("Memory of all processes, PSS", "pss", Unit.MIB),
    _by_count("Start of the sessions up to so many, p50", "start", Unit.MS, COUNTS[1:]),
    _by_count("One turn of each at once, instant model", "turns", Unit.MS),
    _by_count("`pi_turn_get`, p50", "get", Unit.US),
)

FIGURES: Final = {figure.key: figure for section in (*SECTIONS, *MANY) for figure in section.figures}


class Samples:
    """The values of one server command: for each figure one value a round, `None` where a round has none."""

    def __init__(self) -> None:
        self._rounds: dict[str, dict[int, float]] = {}

    def add(self, number: int, values: Mapping[str, float]) -> None:
        """Note what round `number` measured. Raises `KeyError` for what is no figure."""
        for key, value in values.items():
            self._rounds.setdefault(FIGURES[key].key, {})[number] = value

    def of(self, key: str) -> dict[int, float]:
        """The values of one figure by round; empty when it was not measured."""
        return dict(self._rounds.get(key, {}))

    def value(self, key: str) -> float | None:
        """The median of the rounds."""
        rounds = self.of(key)
        return statistics.median(rounds.values()) if rounds else None


def ratio(ours: Samples, theirs: Samples, key: str) -> float | None:
    """The median of the rounds' ratios: what slows one round down slows both of its measurements."""
    rounds = _pairs(ours, theirs, key)
    ratios = [one / other for one, other in rounds if other]
    return statistics.median(ratios) if ratios else None


def difference(ours: Samples, theirs: Samples, key: str) -> float | None:
    """The median of the rounds' differences, in the figure's unit."""
    rounds = _pairs(ours, theirs, key)
    return statistics.median([one - other for one, other in rounds]) if rounds else None


def _pairs(ours: Samples, theirs: Samples, key: str) -> list[tuple[float, float]]:
    other = theirs.of(key)
    return [(value, other[number]) for number, value in ours.of(key).items() if number in other]


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: the least value that so many percent of the values do not exceed."""
    if not values or not 0 < percent <= 100:
        raise ValueError("a percentile needs values, and a percentage above 0 and up to 100")
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]
