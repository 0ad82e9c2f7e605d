"""What a server says unasked is read as long as it is not too much."""

from __future__ import annotations

import pytest

from pi_session_mcp.bridge.allowance import (
    BURST_BYTES,
    BYTES_EACH_SECOND,
    LONG_BYTES,
    LONG_COUNT_TIMES,
    MESSAGE_BYTES,
    Allowance,
    weight,
)


@pytest.mark.parametrize("more", [0, 1])
def test_so_much_may_come_at_once_and_no_more(more: int) -> None:
    assert Allowance(100.0).take(BURST_BYTES + more, 100.0) is (more == 0)


def test_a_long_line_counts_more_than_its_bytes() -> None:
    assert weight(0) == MESSAGE_BYTES
    assert weight(LONG_BYTES) == LONG_BYTES + MESSAGE_BYTES
    assert weight(LONG_BYTES + 1) == (LONG_BYTES + 1) * LONG_COUNT_TIMES + MESSAGE_BYTES


def test_so_much_may_come_for_ever() -> None:
    allowance = Allowance(0.0)
    assert all(allowance.take(BYTES_EACH_SECOND, float(second)) for second in range(10_000))


def test_a_little_more_than_that_ends_some_day() -> None:
    allowance = Allowance(0.0)
    assert not all(allowance.take(BYTES_EACH_SECOND + 10_000, float(second)) for second in range(10_000))


def test_silence_saves_no_more_than_the_burst() -> None:
    allowance = Allowance(0.0)
    assert allowance.take(0, 1e9)
    assert not allowance.take(BURST_BYTES + 1, 1e9)
