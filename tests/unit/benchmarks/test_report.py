"""The tables and the JSON of a benchmark."""

from __future__ import annotations

import json

import pytest

from benchmarks.figures import SECTIONS, Samples
from benchmarks.report import Measured, as_json, as_text, number, table


def measured(*, compared: bool) -> Measured:
    """A benchmark of which only the handshake was measured."""
    ours, theirs = Samples(), Samples()
    for place in range(2):
        ours.add(place, {"listed": 100.0 + place})
        theirs.add(place, {"listed": 400.0})
    machine = {"processors": "2", "Python": "3.11"}
    return Measured(machine, ("ours", "theirs"), ours, theirs if compared else None, {"first turn": 90.0}, ["one"], 9.6)


def lines(text: str, label: str) -> list[list[str]]:
    """The cells of the lines of a table that begin with `label`."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return [row for row in rows if row[0] == label]


def test_the_table_shows_both_servers_and_their_ratio() -> None:
    text = as_text(measured(compared=True))

    assert lines(text, "`tools/list` answered") == [["`tools/list` answered", "ms", "100", "400", "0.25"]]


def test_a_server_alone_has_no_column_for_another() -> None:
    text = as_text(measured(compared=False))

    assert lines(text, "`tools/list` answered") == [["`tools/list` answered", "ms", "100"]]
    assert "theirs" not in text


def test_what_was_not_measured_shows_as_such() -> None:
    text = as_text(measured(compared=True))

    assert lines(text, "first turn")[0][2:] == ["–"] * 3  # noqa: RUF001 - the sign is meant


def test_the_lines_of_a_table_are_equally_long() -> None:
    made = table([["Head", "x", "long head"], ["a longer label", "1.25", ""], ["b", "", "-3"]]).splitlines()

    assert len({len(line) for line in made}) == 1
    assert made[1] == "|----------------|-----:|----------:|"


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "–"), (0, "0"), (0.037, "0.04"), (9.994, "9.99"), (12.34, "12.3"), (-99.94, "-99.9"), (1234.5, "1234")],  # noqa: RUF001 - the sign is meant
)
def test_a_number_has_as_many_digits_as_a_person_reads(value: float | None, said: str) -> None:
    assert number(value) == said


def test_the_json_has_every_figure_with_the_value_of_each_round() -> None:
    said = json.loads(json.dumps(as_json(measured(compared=True))))

    assert said["servers"] == ["ours", "theirs"]
    assert said["figures"].keys() == {figure.key for section in SECTIONS for figure in section.figures}
    assert said["figures"]["listed"] == {
        "label": "`tools/list` answered",
        "unit": "ms",
        "medians": [100.5, 400.0],
        "rounds": [[100.0, 101.0], [400.0, 400.0]],
        "ratio": 0.251,
    }
    assert said["bareSdk"] == {"first turn": 90.0}
    assert said["failures"] == ["one"]


def test_the_json_says_of_each_budget_whether_it_is_kept() -> None:
    budgets = {budget["figure"]: budget for budget in as_json(measured(compared=True))["budgets"]}

    assert budgets["listed"]["met"] is False
    assert budgets["idle_pss"]["met"] is None


def test_a_server_alone_is_the_only_one_in_the_json() -> None:
    said = as_json(measured(compared=False))

    assert said["servers"] == ["ours"]
    assert said["figures"]["listed"]["medians"] == [100.5]
    assert said["figures"]["listed"]["ratio"] is None
