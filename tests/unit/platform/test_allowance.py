"""A burst is allowed, a flood is not, and silence makes up for both."""

from __future__ import annotations

import pytest

from pi_session_mcp.platform.allowance import Allowance

BURST = 1000
EACH_SECOND = 100


def allowed() -> Allowance:
    made = Allowance(BURST, EACH_SECOND)
    made.grow(100.0)
    return made


def taken(allowance: Allowance) -> int:
    """How many times it allows one now."""
    count = 0
    while allowance.take():
        count += 1
    return count


def test_a_burst_of_the_largest_size_is_allowed_and_one_more_is_not() -> None:
    assert taken(Allowance(BURST, EACH_SECOND)) == BURST


@pytest.mark.parametrize("more", [0, 1])
def test_so_much_may_come_at_once_and_no_more(more: int) -> None:
    assert allowed().take(BURST + more) is (more == 0)


def test_it_grows_by_the_second() -> None:
    allowance = allowed()
    taken(allowance)

    allowance.grow(100.5)
    assert taken(allowance) == EACH_SECOND / 2
    allowance.grow(101.5)
    assert taken(allowance) == EACH_SECOND


def test_it_never_grows_beyond_a_burst() -> None:
    allowance = allowed()
    allowance.grow(100_000.0)

    assert taken(allowance) == BURST


@pytest.mark.parametrize(("each", "lasts"), [(EACH_SECOND, True), (EACH_SECOND + 1, False)])
def test_as_much_as_grows_may_come_for_ever_and_a_little_more_may_not(each: int, *, lasts: bool) -> None:
    allowance = allowed()
    came = []
    for second in range(10_000):
        allowance.grow(100.0 + second)
        came.append(allowance.take(each))
    assert all(came) is lasts
