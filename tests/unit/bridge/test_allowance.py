"""What a line of an external server counts."""

from __future__ import annotations

from pi_session_mcp.bridge.allowance import LONG_BYTES, LONG_COUNT_TIMES, MESSAGE_BYTES, weight


def test_a_long_line_counts_more_than_its_bytes() -> None:
    assert weight(0) == MESSAGE_BYTES
    assert weight(LONG_BYTES) == LONG_BYTES + MESSAGE_BYTES
    assert weight(LONG_BYTES + 1) == (LONG_BYTES + 1) * LONG_COUNT_TIMES + MESSAGE_BYTES
