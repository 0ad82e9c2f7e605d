"""Help pages: complete, no wider than the terminal, and asking for one loads no grammar."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.help_pages import FILE, WIDTHS, page
from pi_session_mcp.cli.program import build

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Shell


@pytest.mark.parametrize(("columns", "width"), [(40, 40), (59, 40), (60, 60), (80, 80), (100, 80)])
def test_a_page_is_never_wider_than_the_terminal(columns: int, width: int) -> None:
    shown = page(["config", "init", "--help"], columns)

    assert shown == json.loads(FILE.read_text(encoding="utf-8"))[str(width)]["config init"]
    prose, _, _ = (shown or "").partition("Example")  # a command to copy is not broken
    assert 0 < max(map(len, prose.splitlines())) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_has_an_example_and_complete_sentences(width: int) -> None:
    for node in read(build()).walk():
        shown = page([*node.path, "--help"], width) or ""
        assert "Example" in shown
        assert "pi-session-mcp" in shown
        assert node.help.split("\n\n")[0].endswith(".")
        assert all(option.help.endswith(".") for option in node.options), node.path


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_command_is_for_is_never_cut_off(width: int) -> None:
    for group in (node for node in read(build()).walk() if node.commands):
        _, _, listed = (page([*group.path, "--help"], width) or "").partition("Commands:")
        for command in group.commands:
            assert f"{command.path[-1]} {command.short}" in " ".join(listed.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_breaks_a_word_at_its_hyphen_or_speaks_of_types_of_python(width: int) -> None:
    for node in read(build()).walk():
        shown = page([*node.path, "--help"], width) or ""
        assert not re.search(r"-$", shown, re.MULTILINE), node.path
        assert "list[" not in shown
        assert "\u2011" not in shown


@pytest.mark.parametrize("arguments", [[], ["--help", "doctor"], ["doctr", "--help"], ["doctor", "--no", "--help"]])
def test_what_asks_for_no_page_is_left_to_the_grammar(arguments: list[str]) -> None:
    assert page(arguments, 80) is None


def test_help_and_version_load_neither_typer_nor_pydantic_nor_rich() -> None:
    program = (
        "import sys\n"
        "from pi_session_mcp.__main__ import main\n"
        "sys.argv[1:] = [sys.argv[1]]\n"
        "assert main() == 0\n"
        "unwanted = {'typer', 'click', 'rich', 'pydantic', 'anyio', 'mcp', 'asyncio', 'shutil'}\n"
        "sys.exit(', '.join(unwanted & sys.modules.keys()) or 0)"
    )
    for option in ("--help", "--version"):
        ended = subprocess.run(
            [sys.executable, "-c", program, option], capture_output=True, text=True, check=False, timeout=60
        )
        assert (ended.returncode, ended.stderr) == (0, "")


def test_help_is_the_same_in_a_report(shell: Shell) -> None:
    told = shell.run("config", "--help")
    reported = json.loads(shell.run("config", "--help", "--json").out)

    assert (reported["help"], reported["ok"]) == (told.out, True)
