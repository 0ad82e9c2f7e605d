"""The parts of a benchmark, their summary, and their place in a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import bridge, extensions
from benchmarks.budgets import Absolute, Budget, Verdict
from benchmarks.documents import between, require_marks
from benchmarks.figures import Unit
from benchmarks.parts import Part, as_text, summary

if TYPE_CHECKING:
    from pathlib import Path


def verdict(what: str, measured: float | None) -> Verdict:
    """A verdict on something that may take 10 ms."""
    return Verdict(Budget(what, "listed", Absolute(10)), measured, 10, Unit.MS)


def test_the_summary_names_what_is_over_budget_unknown_or_failed_in_any_part() -> None:
    first = Part("one", "One", "text", [verdict("kept", 10), verdict("missed", 12)])
    second = Part("two", "Two", "text", [verdict("unknown", None)], failures=["it broke"])

    assert summary([first, second]).splitlines() == [
        "# Over budget: 1 of 3",
        "",
        "- missed: MISSED by 2.00 ms",
        "- unknown: not measured",
        "- Two: it broke",
    ]


def test_a_summary_without_faults_says_so() -> None:
    assert summary([Part("one", "One", "", [verdict("kept", 9)])]) == "# Over budget: 0 of 1\n\n- nothing\n"


def test_a_part_shows_its_text_and_then_what_failed() -> None:
    part = Part("one", "One", "| a |\n\n## Budgets", failures=["it broke"])

    assert as_text(part) == "# One\n\n| a |\n\n## Budgets\n\n## Failures\n\n- it broke\n"
    assert part.in_document() == "| a |\n\n### Budgets\n\n### Failures\n\n- it broke"


def test_a_document_gets_a_text_between_the_marks_of_its_name_and_keeps_the_rest() -> None:
    document = "# T\n\n<!-- a: begin -->\nold\n<!-- a: end -->\n\n<!-- b: begin -->\n<!-- b: end -->\n"

    once = between(document, "a", "new\n")

    assert once == "# T\n\n<!-- a: begin -->\n\nnew\n\n<!-- a: end -->\n\n<!-- b: begin -->\n<!-- b: end -->\n"
    assert between(once, "a", "new") == once


@pytest.mark.parametrize(
    "document", ["", "<!-- a: begin -->", "<!-- a: end -->", "<!-- a: end --><!-- a: begin -->", "<!-- b: begin -->"]
)
def test_a_document_without_both_marks_is_not_touched(document: str) -> None:
    with pytest.raises(ValueError, match="no place"):
        between(document, "a", "new")


def test_a_document_is_refused_before_anything_is_measured_for_it(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("<!-- a: begin --><!-- a: end -->", "utf-8")

    require_marks(document, ["a"])
    with pytest.raises(ValueError, match="no place"):
        require_marks(document, ["a", "b"])


def test_a_way_through_the_bridge_is_compared_with_the_direct_one_of_the_same_round() -> None:
    taken = {
        bridge.DIRECT: [1.0, 100.0, 1.0],
        bridge.BRIDGED: [4.0, 103.0, 9.0],
        bridge.BUILT_IN: [1.0, 1.0, 1.0],
        bridge.GRANTED: [12.0, 12.0, 1.0],
    }

    assert [(one.measured, one.met) for one in bridge.verdicts(taken)] == [(3.0, True), (11.0, False)]
    assert [one.met for one in bridge.verdicts(None)] == [None, None]


def test_a_start_with_an_extension_may_cost_a_quarter_of_a_second_more() -> None:
    assert [extensions.verdict(more_ms).met for more_ms in (250.0, 250.5, None)] == [True, False, None]
