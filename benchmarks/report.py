"""The table and the JSON of one benchmark. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.budgets import judge_all
from benchmarks.figures import SECTIONS, ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.budgets import Verdict
    from benchmarks.figures import Figure, Samples, Section

NOT_MEASURED: Final = "–"  # noqa: RUF001 - the sign is meant


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that a benchmark found. `theirs` is the server that it was compared with, if any."""

    machine: Mapping[str, str]
    names: tuple[str, str]
    ours: Samples
    theirs: Samples | None
    bare: Mapping[str, float]
    """The bare SDK: medians in milliseconds, by name."""
    failures: Sequence[str]
    took_s: float


def as_text(measured: Measured) -> str:
    """Tables in Markdown that are also aligned."""
    names, ours, theirs = measured.names, measured.ours, measured.theirs
    budgets = verdicts_as_text(judge_all(ours, theirs))
    parts = [heading(measured), sections_as_text(SECTIONS, names, ours, theirs), _bare(measured), "## Budgets", budgets]
    return "\n\n".join(parts) + "\n"


def as_json(measured: Measured) -> dict[str, Any]:
    """The same as an object, with the value of each round."""
    return {
        "machine": dict(measured.machine),
        "tookSeconds": round(measured.took_s, 1),
        "servers": list(measured.names if measured.theirs else measured.names[:1]),
        "figures": sections_as_json(SECTIONS, measured.ours, measured.theirs),
        "bareSdk": {name: round(value, 3) for name, value in measured.bare.items()},
        "budgets": [verdict_as_json(verdict) for verdict in judge_all(measured.ours, measured.theirs)],
        "failures": list(measured.failures),
    }


def number(value: float | None) -> str:
    """A value with three significant digits or more, as a person reads it."""
    if value is None:
        return NOT_MEASURED
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns; the first row is its head, all columns but the first are to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    rule = "|".join(["", "-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:]), ""])
    return "\n".join([lines[0], rule, *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    return f"| {row[0].ljust(widths[0])} | {' | '.join(rest)} |" if rest else f"| {first} |"


def heading(measured: Measured) -> str:
    """On which machine, and how long it took."""
    machine = ", ".join(f"{name} {value}" for name, value in measured.machine.items())
    return f"{machine}; medians; took {measured.took_s:.0f} s."


def sections_as_text(sections: Sequence[Section], names: tuple[str, str], ours: Samples, theirs: Samples | None) -> str:
    """One table for each section, with a column for each server and one for their ratio."""
    return "\n\n".join(_section(section, names, ours, theirs) for section in sections)


def _section(section: Section, names: tuple[str, str], ours: Samples, theirs: Samples | None) -> str:
    head = [section.title, "", names[0]] + ([names[1], "ratio"] if theirs else [])
    return table([head, *(_row(figure, ours, theirs) for figure in section.figures)])


def _row(figure: Figure, ours: Samples, theirs: Samples | None) -> list[str]:
    row = [figure.label, figure.unit.value, number(ours.value(figure.key))]
    if theirs is not None:
        row += [number(theirs.value(figure.key)), number(ratio(ours, theirs, figure.key))]
    return row


def _bare(measured: Measured) -> str:
    return table([["Bare SDK", "ms"], *([name, number(value)] for name, value in measured.bare.items())])


def verdicts_as_text(verdicts: Sequence[Verdict]) -> str:
    """A table of budgets: what is allowed, what was measured, and the verdict."""
    rows = [
        [verdict.budget.what, amount(verdict.limit, verdict), amount(verdict.measured, verdict), words(verdict)]
        for verdict in verdicts
    ]
    return table([["What", "budget", "measured", "verdict"], *rows])


def amount(value: float | None, verdict: Verdict) -> str:
    """A value in the unit of a verdict."""
    return NOT_MEASURED if value is None else f"{number(value)} {verdict.unit}".strip()


def words(verdict: Verdict) -> str:
    """Whether a budget is kept, and by how much."""
    if verdict.measured is None:
        return "not measured"
    apart = abs(verdict.limit - verdict.measured)
    by = f"by {number(apart)} {verdict.unit}".removesuffix(" more")
    return ("met" if apart == 0 else f"met {by}") if verdict.met else f"MISSED {by}"


def sections_as_json(sections: Sequence[Section], ours: Samples, theirs: Samples | None) -> dict[str, Any]:
    """Every figure of some sections by its key, with the value of each round."""
    figures = [figure for section in sections for figure in section.figures]
    return {figure.key: _figure_as_json(figure, ours, theirs) for figure in figures}


def _figure_as_json(figure: Figure, ours: Samples, theirs: Samples | None) -> dict[str, Any]:
    servers = [ours] if theirs is None else [ours, theirs]
    times = None if theirs is None else ratio(ours, theirs, figure.key)
    return {
        "label": figure.label,
        "unit": figure.unit.value,
        "medians": [_rounded(server.value(figure.key)) for server in servers],
        "rounds": [[_rounded(value) for value in server.of(figure.key).values()] for server in servers],
        "ratio": _rounded(times),
    }


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as an object."""
    return {
        "what": verdict.budget.what,
        "figure": verdict.budget.key,
        "limit": verdict.limit,
        "measured": _rounded(verdict.measured),
        "unit": verdict.unit.strip(),
        "met": verdict.met,
        "share": _rounded(verdict.share),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
