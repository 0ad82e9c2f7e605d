"""How the values of several rounds become one figure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.budgets import BUDGETS
from benchmarks.figures import FIGURES, MANY, SECTIONS, Samples, difference, percentile, ratio


def samples(**rounds: list[float]) -> Samples:
    """Samples with the given values in rounds 0, 1 and so on."""
    made = Samples()
    for key, values in rounds.items():
        for number, value in enumerate(values):
            made.add(number, {key: value})
    return made


def test_a_figure_is_the_median_of_its_rounds() -> None:
    assert samples(listed=[9.0, 1.0, 2.0]).value("listed") == 2.0


def test_a_figure_that_no_round_measured_has_no_value() -> None:
    assert Samples().value("listed") is None
    assert ratio(Samples(), samples(listed=[1.0]), "listed") is None
    assert difference(Samples(), samples(listed=[1.0]), "listed") is None


def test_what_is_no_figure_cannot_be_noted() -> None:
    with pytest.raises(KeyError):
        Samples().add(0, {"nothing": 1.0})


def test_a_ratio_compares_within_rounds_so_that_a_slow_round_does_not_count() -> None:
    ours, theirs = samples(listed=[1.0, 10.0, 1.0]), samples(listed=[2.0, 20.0, 4.0])

    assert ratio(ours, theirs, "listed") == 0.5
    assert difference(ours, theirs, "listed") == -3.0


def test_a_round_that_only_one_server_finished_is_not_compared() -> None:
    ours, theirs = Samples(), Samples()
    for number, value in ((0, 3.0), (2, 8.0)):
        ours.add(number, {"listed": value})
    for number, value in ((1, 1.0), (2, 2.0)):
        theirs.add(number, {"listed": value})

    assert ratio(ours, theirs, "listed") == 4.0


def test_nothing_is_divided_by_zero() -> None:
    assert ratio(samples(wakeups=[1.0]), samples(wakeups=[0.0]), "wakeups") is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.integers(1, 100))
def test_so_many_percent_of_the_values_do_not_exceed_a_percentile(values: list[float], percent: int) -> None:
    found = percentile(values, percent)

    assert found in values
    assert sum(value <= found for value in values) * 100 >= len(values) * percent
    assert sum(value < found for value in values) * 100 < len(values) * percent


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1.0], 0), ([1.0], 101)])
def test_a_percentile_of_nothing_or_of_no_percentage_is_refused(values: list[float], percent: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, percent)


def test_every_figure_has_a_key_of_its_own_and_every_budget_names_a_figure() -> None:
    assert len(FIGURES) == sum(len(section.figures) for section in (*SECTIONS, *MANY))
    assert {budget.key for budget in BUDGETS} <= FIGURES.keys()
