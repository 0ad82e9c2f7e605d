"""A burst is allowed, a flood is not, and silence makes up for both."""

from __future__ import annotations

from pi_session_mcp.host.allowance import FRAMES_A_SECOND, MAX_FRAMES, Allowance


def taken(allowance: Allowance) -> int:
    """How many frames it allows now."""
    count = 0
    while allowance.take():
        count += 1
    return count


def test_a_burst_of_the_largest_size_is_allowed_and_one_frame_more_is_not() -> None:
    assert taken(Allowance()) == MAX_FRAMES


def test_it_grows_by_the_second() -> None:
    allowance = Allowance()
    allowance.grow(100.0)
    taken(allowance)

    allowance.grow(100.5)
    assert taken(allowance) == FRAMES_A_SECOND / 2
    allowance.grow(101.5)
    assert taken(allowance) == FRAMES_A_SECOND


def test_it_never_grows_beyond_a_burst() -> None:
    allowance = Allowance()
    allowance.grow(100.0)
    allowance.grow(100_000.0)

    assert taken(allowance) == MAX_FRAMES
