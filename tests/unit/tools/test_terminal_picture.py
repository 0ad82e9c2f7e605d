"""A picture of a terminal shows the lines as they stood at the end, and fetches nothing."""

from __future__ import annotations

import pytest

from tools.terminal_picture import picture, settled

_FRAMES = "\x1b[?25l\x1b[32m|\x1b[0m busy\r\x1b[2K\x1b[32m/\x1b[0m busy\r\n\x1b[?25h\r\x1b[1A\x1b[2K"


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("one\r\ntwo\r\n", ["one", "two", ""]),
        ("one\ntwo", ["one", "two"]),
        ("first\rsecond\n", ["second", ""]),
        (f"{_FRAMES}done\r\n", ["done", ""]),
        ("\x1b]0;title\x07text", ["text"]),
        ("a\nb\n\x1b[2Ac", ["ac", "b", ""]),
        ("\x1b[9Atop", ["top"]),
    ],
)
def test_what_is_drawn_over_is_not_in_the_picture(written: str, lines: list[str]) -> None:
    assert settled(written) == lines


def test_the_picture_has_the_command_and_its_text_and_names_no_host() -> None:
    drawn = picture("\x1b[32mok\x1b[0m all of <it> [bold]\r\n", "pi-session-mcp demo")

    assert "pi-session-mcp&#160;demo" in drawn
    assert "&lt;it&gt;&#160;[bold]" in drawn
    assert drawn.replace("http://www.w3.org/2000/svg", "").count("//") == drawn.count("https://www.textualize.io")
    assert "@font-face" not in drawn
