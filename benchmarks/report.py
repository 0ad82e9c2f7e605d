"""The table and the JSON of one benchmark. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.budgets import judge_all
from benchmarks.figures import SECTIONS, ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.budgets import Verdict
    from benchmarks.figures import Figure, Samples

JSON_VERSION: Final = 1
BEGIN: Final = "<!-- tables: begin -->"
END: Final = "<!-- tables: end -->"
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
    parts = [_heading(measured), _figures(measured), _bare(measured), "## Budgets", _budgets(measured)]
    if measured.failures:
        parts.append("## Failures\n\n" + "\n".join(f"- {failure}" for failure in measured.failures))
    return "\n\n".join(parts) + "\n"


def replaced(document: str, text: str) -> str:
    """The document with `text` between its two marks. Raises `ValueError` when it does not have both."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the document has no place for the tables")
    tables = text.partition("\n\n")[2].replace("## ", "### ")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def as_json(measured: Measured) -> dict[str, Any]:
    """The same as an object, with the value of each round."""
    return {
        "version": JSON_VERSION,
        "machine": dict(measured.machine),
        "tookSeconds": round(measured.took_s, 1),
        "servers": list(measured.names if measured.theirs else measured.names[:1]),
        "figures": {
            figure.key: _figure_as_json(figure, measured) for section in SECTIONS for figure in section.figures
        },
        "bareSdk": {name: round(value, 3) for name, value in measured.bare.items()},
        "budgets": [_verdict_as_json(verdict) for verdict in judge_all(measured.ours, measured.theirs)],
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


def _heading(measured: Measured) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in measured.machine.items())
    return f"# Benchmark\n\n{machine}; medians; took {measured.took_s:.0f} s."


def _figures(measured: Measured) -> str:
    parts = []
    for section in SECTIONS:
        rows = [_head(section.title, measured), *(_row(figure, measured) for figure in section.figures)]
        parts.append(table(rows))
    return "\n\n".join(parts)


def _head(title: str, measured: Measured) -> list[str]:
    return [title, "", measured.names[0]] + ([measured.names[1], "ratio"] if measured.theirs else [])


def _row(figure: Figure, measured: Measured) -> list[str]:
    row = [figure.label, figure.unit.value, number(measured.ours.value(figure.key))]
    if measured.theirs is not None:
        times = ratio(measured.ours, measured.theirs, figure.key)
        row += [number(measured.theirs.value(figure.key)), number(times)]
    return row


def _bare(measured: Measured) -> str:
    return table([["Bare SDK", "ms"], *([name, number(value)] for name, value in measured.bare.items())])


def _budgets(measured: Measured) -> str:
    rows = [["What", "budget", "measured", "verdict"]]
    for verdict in judge_all(measured.ours, measured.theirs):
        limit = f"{number(verdict.limit)} {verdict.unit}"
        seen = NOT_MEASURED if verdict.measured is None else f"{number(verdict.measured)} {verdict.unit}"
        rows.append([verdict.budget.what, limit, seen, words(verdict)])
    return table(rows)


def words(verdict: Verdict) -> str:
    """Whether a budget is kept, and by how much."""
    if verdict.measured is None:
        return "not measured"
    apart = abs(verdict.limit - verdict.measured)
    by = f"by {number(apart)} {verdict.unit}".removesuffix(" more")
    return ("met" if apart == 0 else f"met {by}") if verdict.met else f"MISSED {by}"


def _figure_as_json(figure: Figure, measured: Measured) -> dict[str, Any]:
    servers = [measured.ours] if measured.theirs is None else [measured.ours, measured.theirs]
    times = None if measured.theirs is None else ratio(measured.ours, measured.theirs, figure.key)
    return {
        "label": figure.label,
        "unit": figure.unit.value,
        "medians": [_rounded(server.value(figure.key)) for server in servers],
        "rounds": [[_rounded(value) for value in server.of(figure.key).values()] for server in servers],
        "ratio": _rounded(times),
    }


def _verdict_as_json(verdict: Verdict) -> dict[str, Any]:
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
