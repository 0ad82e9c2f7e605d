"""Whether a budget is kept, at its limit and past it."""

from __future__ import annotations

import pytest

from benchmarks.budgets import BUDGETS, Above, Absolute, Budget, Times, judge, judge_all
from benchmarks.figures import Samples
from benchmarks.report import words


def one(value: float) -> Samples:
    """A server whose handshake took so many milliseconds."""
    made = Samples()
    made.add(0, {"listed": value})
    return made


CASES = [(Times(0.25), 50.0), (Above(10), 210.0), (Absolute(250), 250.0)]


@pytest.mark.parametrize(("bound", "limit"), CASES)
def test_a_budget_is_kept_at_its_limit_and_missed_past_it(bound: Times | Above | Absolute, limit: float) -> None:
    budget = Budget("the handshake", "listed", bound)

    assert judge(budget, one(limit), one(200)).met is True
    assert judge(budget, one(limit + 0.5), one(200)).met is False


@pytest.mark.parametrize("bound", [Times(0.25), Above(10)])
def test_a_comparison_with_nothing_has_no_verdict(bound: Times | Above) -> None:
    verdict = judge(Budget("the handshake", "listed", bound), one(1), None)

    assert verdict.met is None
    assert words(verdict) == "not measured"


def test_an_absolute_budget_needs_no_other_server() -> None:
    assert judge(Budget("the handshake", "listed", Absolute(250)), one(1), None).met is True


@pytest.mark.parametrize(
    ("bound", "value", "said"),
    [
        (Absolute(250), 240.0, "met by 10.0 ms"),
        (Absolute(250), 250.0, "met"),
        (Absolute(250), 375.0, "MISSED by 125 ms"),
        (Above(10), 220.0, "MISSED by 10.0 ms"),
        (Times(0.25), 100.0, "MISSED by 0.25 ×"),  # noqa: RUF001 - the sign is meant
    ],
)
def test_a_verdict_says_by_how_much(bound: Times | Above | Absolute, value: float, said: str) -> None:
    assert words(judge(Budget("the handshake", "listed", bound), one(value), one(200))) == said


def test_a_part_of_nothing_is_no_number() -> None:
    assert judge(Budget("the handshake", "listed", Absolute(0)), one(0), None).share is None
    assert judge(Budget("the handshake", "listed", Absolute(250)), one(125), None).share == 0.5


def test_every_budget_is_judged_in_its_order() -> None:
    assert [verdict.budget for verdict in judge_all(one(1), None)] == list(BUDGETS)
