"""The picture of the budgets."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from benchmarks.budgets import Absolute, Budget, Verdict
from benchmarks.figures import Unit
from benchmarks.plot import MOST_SHOWN, Bar, bars, picture


def verdict(measured: float | None, limit: float = 10) -> Verdict:
    """A verdict on something that may take so many milliseconds."""
    return Verdict(Budget("`a` → b", "listed", Absolute(limit)), measured, limit, Unit.MS)


@pytest.mark.parametrize(
    ("seen", "bar"),
    [
        (verdict(5), Bar("a → b", 0.5, "5.00 of 10.0 ms", met=True)),
        (verdict(10), Bar("a → b", 1.0, "10.0 of 10.0 ms", met=True)),
        (verdict(11), Bar("a → b", 1.1, "11.0 of 10.0 ms, MISSED", met=False)),
        (verdict(500), Bar("a → b", MOST_SHOWN, "500 of 10.0 ms, MISSED", met=False)),
        (verdict(-5), Bar("a → b", 0.0, "-5.00 of 10.0 ms", met=True)),
        (verdict(0, limit=0), Bar("a → b", 0.0, "0 of 0 ms", met=True)),
        (verdict(1, limit=0), Bar("a → b", MOST_SHOWN, "1.00 of 0 ms, MISSED", met=False)),
        (verdict(None), Bar("a → b", 0.0, "not measured", met=None)),
    ],
)
def test_a_bar_is_as_long_as_what_was_measured_is_a_share_of_the_limit(seen: Verdict, bar: Bar) -> None:
    assert bars([seen]) == [bar]


def test_the_picture_names_each_budget_and_is_the_same_for_the_same_figures() -> None:
    pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")
    shown = bars([verdict(5), verdict(500), verdict(None)])

    drawn = picture(shown, "a caption")

    texts = [element.text for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert "a caption" in texts
    assert texts.count("a → b") == 3
    assert any("500 of 10.0 ms, MISSED" in (text or "") for text in texts)
    assert picture(shown, "a caption") == drawn
