"""Whether memory grows while a server works: samples of its processes, a line through them, and the table. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.report import NOT_MEASURED, number, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ALL: Final = "all"
_WARM_UP_PART: Final = 3
_MOST_WARM_UP_MIN: Final = 20.0
_MINUTES_IN_HOUR: Final = 60
_MOST_ROWS: Final = 14


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in MiB. `pss` shares what several processes map among them; where nobody tells it, it is `rss`."""

    pss: float
    rss: float


@dataclass(frozen=True, slots=True)
class Sample:
    """What a server had done by a minute, and the memory of its processes then, by role."""

    minute: float
    turns: int
    sessions: int
    processes: Mapping[str, Memory]

    def of(self, role: str) -> Memory | None:
        """The memory of the process of a role, of all processes together, or `None`."""
        if role != ALL:
            return self.processes.get(role)
        seen = self.processes.values()
        return Memory(sum(one.pss for one in seen), sum(one.rss for one in seen))


@dataclass(frozen=True, slots=True)
class Trend:
    """A line through the memory of one role after the warm-up, in MiB of RSS."""

    role: str
    slope: float | None
    """MiB an hour; `None` for fewer than three samples."""
    early: float
    """The median of the first third."""
    late: float
    """The median of the last third."""


def warm_up_min(minutes: float) -> float:
    """How long a run of so many minutes warms up: a third of it, at most twenty minutes."""
    return min(minutes / _WARM_UP_PART, _MOST_WARM_UP_MIN)


def roles(samples: Sequence[Sample]) -> list[str]:
    """Every role that was seen, in the order of its first appearance, and all of them together."""
    return [*dict.fromkeys(role for sample in samples for role in sample.processes), ALL]


def trends(samples: Sequence[Sample], warm_up: float) -> list[Trend]:
    """The trend of each role over the samples that were taken after `warm_up` minutes."""
    warm = [sample for sample in samples if sample.minute >= warm_up]
    return [_trend(role, points) for role in roles(warm) if (points := _points(role, warm))]


def _points(role: str, samples: Sequence[Sample]) -> list[tuple[float, float]]:
    seen = ((sample.minute, sample.of(role)) for sample in samples)
    return [(minute, memory.rss) for minute, memory in seen if memory is not None]


def _trend(role: str, points: Sequence[tuple[float, float]]) -> Trend:
    third = max(1, len(points) // 3)
    minutes, sizes = zip(*points, strict=True)
    slope = statistics.linear_regression(minutes, sizes).slope * _MINUTES_IN_HOUR if len(points) > 2 else None
    return Trend(role, slope, statistics.median(sizes[:third]), statistics.median(sizes[-third:]))


def as_text(samples: Sequence[Sample], warm_up: float) -> str:
    """Two tables in Markdown: the memory at some of the samples, and the trends of all of them."""
    return f"{_course(samples)}\n\n{_trends(trends(samples, warm_up))}\n"


def _course(samples: Sequence[Sample]) -> str:
    step = -(-len(samples) // _MOST_ROWS) or 1
    shown = [*samples[: len(samples) - 1 : step], *samples[-1:]]
    names = roles(samples)
    head = ["minute", "turns", "sessions", *(f"{role}, RSS (PSS)" for role in names)]
    return table([head, *(_row(sample, names) for sample in shown)])


def _row(sample: Sample, names: Sequence[str]) -> list[str]:
    cells = [cell(sample.of(role)) for role in names]
    return [f"{sample.minute:.0f}", str(sample.turns), str(sample.sessions), *cells]


def cell(memory: Memory | None) -> str:
    """RSS, and PSS in brackets."""
    return NOT_MEASURED if memory is None else f"{memory.rss:.1f} ({memory.pss:.1f})"


def _trends(found: Sequence[Trend]) -> str:
    head = ["After the warm-up, RSS", "slope, MiB an hour", "first third, MiB", "last third, MiB"]
    return table([head, *([one.role, number(one.slope), f"{one.early:.1f}", f"{one.late:.1f}"] for one in found)])


def as_json(samples: Sequence[Sample], warm_up: float) -> dict[str, Any]:
    """The same as an object, with every sample."""
    return {
        "warmUpMinutes": warm_up,
        "samples": [
            {
                "minute": round(sample.minute, 2),
                "turns": sample.turns,
                "sessions": sample.sessions,
                "mib": {role: {"pss": one.pss, "rss": one.rss} for role, one in sample.processes.items()},
            }
            for sample in samples
        ],
        "trends": [
            {"role": one.role, "mibPerHour": one.slope, "early": one.early, "late": one.late}
            for one in trends(samples, warm_up)
        ],
    }
