"""The doctor's report, as text and as JSON. It must work without Typer and other commands, so it imports neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.outcome import Answer, Block, Facts, Line, Mark, Outcome, Prose, Show
from pi_session_mcp.doctor.subject import UNCHECKED, Check, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.doctor.report import Report

_MARKS: Final = {Severity.OK: Mark.OK, Severity.WARNING: Mark.WARNING, Severity.ERROR: Mark.FAILED}
_WORST_LAST: Final = (Severity.OK, Severity.WARNING, Severity.ERROR)


def examine(show: Show) -> Answer:
    """Examine this installation and report."""
    from pi_session_mcp.doctor.checks import examine as examined
    from pi_session_mcp.doctor.installation import Installation

    with show.working("Looking at this installation"):
        report = examined(Installation.here())
    return outcome(report)


def outcome(report: Report) -> Outcome:
    """The report as an outcome: a program and a person get the same checks."""
    return Outcome(report.exit_status, report.members(), tuple(_blocks(report)))


def _blocks(report: Report) -> Iterator[Block]:
    """One group for each severity, then the verdict. The worst group is last, where a terminal still shows it."""
    for severity in _WORST_LAST:
        group = report.of(severity)
        for check in group:
            yield from _shown(check)
        if group:
            yield Prose("")
    yield from _source(report)
    yield Line(_MARKS[report.worst], _verdict_word(report), f"{_counted(report)} Next: {report.next_command}")


def _source(report: Report) -> Iterator[Block]:
    if report.configuration_from is not None:
        yield Line(Mark.NOTE, "read", f"the configuration, from {report.configuration_from.words}")


def _shown(check: Check) -> Iterator[Block]:
    if check.remedy is None:
        yield Line(Mark.OK, "ok", f"{check.subject}: {check.row.fine}")
        if check.note is not None:
            yield Facts((("note", check.note),))
        return
    found = "could not be checked" if check.remedy == UNCHECKED else check.row.found
    yield Line(_MARKS[check.severity], check.severity.value, f"{check.subject}: {found}")
    yield Facts((("check", check.row.id), *_place(check), ("do", check.remedy)))


def _place(check: Check) -> Iterator[tuple[str, str]]:
    place = check.place
    if "line" in place:
        yield "place", f"line {place['line']}, column {place['column']}"
    elif place.get("pointer"):
        yield "place", str(place["pointer"])
    if "rule" in place:
        yield "rule", str(place["rule"])


def _verdict_word(report: Report) -> str:
    return {Severity.OK: "healthy", Severity.WARNING: "usable", Severity.ERROR: "broken"}[report.worst]


def _counted(report: Report) -> str:
    counts = ((len(report.of(Severity.ERROR)), "error"), (len(report.of(Severity.WARNING)), "warning"))
    told = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    return f"{', '.join(told)}." if told else "Nothing is wrong."
