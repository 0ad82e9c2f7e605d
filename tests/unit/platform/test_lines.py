"""Chunks become lines in linear time, and a line that is too long is dropped."""

from __future__ import annotations

import pytest

from pi_session_mcp.platform.lines import LineSplitter

LIMIT = 4 * 1024 * 1024


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_they_arrive(size: int) -> None:
    text = b"one\n\ntwo\r\n" + "drei\u2028\u0085".encode() + b"\nrest"
    splitter = LineSplitter(LIMIT)

    lines = [line for start in range(0, len(text), size) for line in splitter.feed(text[start : start + size])]

    assert lines == [b"one", b"", b"two\r", "drei\u2028\u0085".encode()]
    assert splitter.too_long == 0


@pytest.mark.parametrize(("size", "kept"), [(LIMIT, True), (LIMIT + 1, False)])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(size: int, kept: bool) -> None:  # noqa: FBT001
    splitter = LineSplitter(LIMIT)
    line = b"x" * size

    lines = [done for start in range(0, size, 65_536) for done in splitter.feed(line[start : start + 65_536])]
    lines += splitter.feed(b"\nnext\n")

    assert lines == ([line, b"next"] if kept else [b"next"])
    assert splitter.too_long == (0 if kept else 1)


def test_a_line_that_is_too_long_is_not_kept_while_it_arrives() -> None:
    splitter = LineSplitter(LIMIT)
    for _ in range(200):
        assert splitter.feed(b"x" * 65_536) == []
    assert splitter.too_long == 1
    assert splitter._pieces == []
