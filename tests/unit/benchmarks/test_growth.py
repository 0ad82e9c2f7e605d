"""Whether memory grows, from samples."""

from __future__ import annotations

import pytest

from benchmarks.growth import ALL, Memory, Sample, as_json, as_text, roles, trends, warm_up_min


def sample(minute: float, **mib: float) -> Sample:
    """What was seen at a minute."""
    return Sample(minute, int(minute) * 10, int(minute), {role: Memory(size / 2, size) for role, size in mib.items()})


def test_the_slope_is_that_of_a_line_in_mib_an_hour() -> None:
    found = {one.role: one for one in trends([sample(minute, host=100 + minute) for minute in range(1, 10)], 0)}

    assert found["host"].slope == pytest.approx(60)
    assert (found["host"].early, found["host"].late) == (102, 108)


def test_memory_that_stays_has_no_slope_whatever_it_was_while_warming_up() -> None:
    samples = [sample(1, host=10), sample(2, host=80), *(sample(minute, host=100) for minute in range(3, 9))]

    assert [one.slope for one in trends(samples, 3)] == [0, 0]


def test_all_processes_are_added_up() -> None:
    samples = [sample(minute, server=50 + minute, host=100 - minute) for minute in range(5)]

    assert roles(samples) == ["server", "host", ALL]
    assert [round(one.slope or 0) for one in trends(samples, 0)] == [60, -60, 0]


def test_two_samples_are_too_few_for_a_line() -> None:
    assert [one.slope for one in trends([sample(1, host=1), sample(2, host=5)], 0)] == [None, None]


@pytest.mark.parametrize(("minutes", "warm_up"), [(3, 1), (60, 20), (90, 20)])
def test_a_third_of_a_run_but_at_most_twenty_minutes_is_warm_up(minutes: float, warm_up: float) -> None:
    assert warm_up_min(minutes) == warm_up


def test_a_process_that_was_not_there_yet_has_no_memory() -> None:
    text = as_text([sample(1, server=50), sample(2, server=50, host=100)], 0)

    assert [cell.strip() for cell in text.splitlines()[2].split("|")[1:-1]] == [
        *("1", "10", "1", "50.0 (25.0)", "–", "50.0 (25.0)"),  # noqa: RUF001 - the sign is meant
    ]


def test_a_long_run_shows_some_of_its_samples_and_always_the_last() -> None:
    text = as_text([sample(minute, host=100) for minute in range(1, 62)], 10)
    minutes = [line.split("|")[1].strip() for line in text.partition("\n\n")[0].splitlines()[2:]]

    assert minutes[0] == "1"
    assert minutes[-1] == "61"
    assert len(minutes) <= 15


def test_the_json_has_every_sample() -> None:
    said = as_json([sample(1, host=4), sample(2, host=5)], 1)

    assert [one["mib"] for one in said["samples"]] == [
        {"host": {"pss": 2.0, "rss": 4}},
        {"host": {"pss": 2.5, "rss": 5}},
    ]
