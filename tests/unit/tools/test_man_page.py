"""The manual page has every command and option of the program, and is sound roff."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.program import build
from tools.man_page import _shown, text


def test_every_command_and_every_option_has_its_place() -> None:
    for command in read(build()).walk():
        if command.path and not command.commands:
            _, _, section = text().partition(f'.SS "{_shown(" ".join(command.path))}"\n')
            assert all(_shown(option.name) in section for option in command.options if option.name != "--help")


@pytest.mark.parametrize(
    ("line", "shown"),
    [(".so /etc/passwd", "\\&.so /etc/passwd"), ("'quoted'", "\\&'quoted'"), ("a\\b --json", "a\\eb \\-\\-json")],
)
def test_no_word_of_a_help_text_is_a_request(line: str, shown: str) -> None:
    assert _shown(line) == shown


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_nothing_to_complain_about() -> None:
    ended = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=text(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
