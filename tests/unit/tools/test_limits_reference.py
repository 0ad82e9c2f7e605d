"""The page of limits says what the program has, in units that people read."""

from __future__ import annotations

import pytest

from tools.limits_reference import bounds, of_host, seconds, size


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1023, "1,023 bytes"),
        (1024, "1 KiB"),
        (1025, "1,025 bytes"),
        (262_144, "256 KiB"),
        (4 * 1024**2, "4 MiB"),
        (2 * 1024**3, "2 GiB"),
    ],
)
def test_a_size_is_said_in_the_largest_unit_that_divides_it(count: int, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0.25, "250 ms"), (1, "1 s"), (4.5, "4.5 s"), (59, "59 s"), (600, "10 min")]
)
def test_a_time_is_said_as_people_say_it(count: float, words: str) -> None:
    assert seconds(count) == words


def test_a_constant_of_the_host_is_read_from_its_source() -> None:
    assert of_host("frames.mjs", "MAX_FRAME_BYTES") == 16 * 1024 * 1024

    with pytest.raises(AssertionError, match="no NOT_THERE"):
        of_host("frames.mjs", "NOT_THERE")


def test_no_bound_stands_twice_in_one_table() -> None:
    for rows in bounds().values():
        assert len({row.what for row in rows}) == len(rows) > 0
