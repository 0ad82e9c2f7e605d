"""The manual page says what the program's help says, and is sound roff."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.program import build
from tools.man_page import PAGE, _shown, main, text

ROOT = Path(__file__).parents[3]


def test_the_page_is_what_the_program_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == text()

    monkeypatch.chdir(tmp_path)
    assert main(["--check"]) == 1
    assert main([]) == main(["--check"]) == 0


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
