"""Whoever misspells a name is told the one that is meant, and no word that was typed is repeated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.cli.nearest import nearest
from pi_session_mcp.cli.outcome import Document, Misuse
from pi_session_mcp.cli.program import parse
from pi_session_mcp.cli.progress import ReportStage
from pi_session_mcp.cli.render import json_report, misuse_text
from pi_session_mcp.cli.streams import Form

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Shell

GROUPS = [(), ("config",), ("extensions",), ("runtime",)]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("docter", ["doctor"]),
        ("DOCTOR", ["doctor"]),
        ("stup", ["setup"]),
        ("conf check", ["config"]),
        ("config chek", ["check"]),
        ("config validate", []),
        ("init", ["config init"]),
        ("instal", ["runtime install"]),
        ("runtime statsu", ["status"]),
        ("extensions chekc", ["check"]),
        ("doctor --jsno", ["--json"]),
        ("config init --provder x", ["--provider"]),
        ("config init --workspaces a=b", ["--workspace"]),
        ("setup --aply codex:user", ["--apply"]),
        ("setup codex:usr", ["codex:user"]),
        ("setup codex", ["codex:user"]),
        ("setup codex:user claude", ["claude-code:user", "claude-code:project", "claude-code:local"]),
        ("setup verify codex:user", ["--verify"]),
        ("--verison", ["--version"]),
        ("--show-completion zhs", ["zsh"]),
        ("frobnicate", []),
        ("\udcff\x1b[2J", []),
        ("x" * 100_000, []),
    ],
)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["person", "program"])
def test_the_nearest_name_is_told(arguments: str, meant: list[str], more: list[str]) -> None:
    answer = parse([*arguments.split(), *more])(ReportStage())

    assert isinstance(answer, Misuse)
    assert list(answer.nearest) == meant
    assert json.loads(json_report(answer)).get("nearest", []) == meant
    told = " ".join(misuse_text(answer, Form(columns=100, colour=False, unicode=True)).split())
    assert ("did you mean" in told) == bool(meant)
    assert " or ".join(meant) in told


@pytest.mark.parametrize(
    ("arguments", "command", "option"),
    [
        ("doctor --json=yes", "doctor", "--json"),
        ("setup --json=1 codex:user", "setup", "--verify"),
        ("config init --coding=1", "config init", "--coding"),
        ("config init --output", "config init", "--output"),
        ("--version=1", "", "--version"),
    ],
)
def test_a_value_that_is_missing_or_too_much_leads_to_the_help_of_its_command(
    arguments: str, command: str, option: str
) -> None:
    answer = parse(arguments.split())(ReportStage())

    assert isinstance(answer, Misuse)
    assert answer.message == "An option is unknown or incomplete. Try: " + " ".join(
        word for word in ("pi-session-mcp", command, "--help") if word
    )
    assert option in dict(answer.valid)["options"]
    assert answer.nearest == ()


def test_at_most_three_names_are_told_the_best_first() -> None:
    assert nearest("model", [f"model-{number}" for number in range(9)]) == ("model-0", "model-1", "model-2")
    assert nearest("mdoel-1", ["other", "model-2", "model-1"]) == ("model-1", "model-2")


def test_nothing_is_near_to_nothing() -> None:
    assert nearest("", ["a", "b"]) == nearest("a", []) == ()


@pytest.mark.parametrize("group", GROUPS, ids=repr)
def test_without_a_command_there_is_help(shell: Shell, group: tuple[str, ...]) -> None:
    ended = shell.run(*group)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == shell.run(*group, "--help").out


@pytest.mark.parametrize("group", GROUPS, ids=repr)
def test_a_program_that_names_no_command_is_told_so(shell: Shell, group: tuple[str, ...]) -> None:
    ended = shell.run(*group, "--json")

    assert (ended.code, ended.err) == (64, "")
    assert json.loads(ended.out)["code"] == "usage"


@pytest.mark.parametrize("command", ["", "serve", "doctor", "setup", "config init", "runtime install", "demo"])
@pytest.mark.parametrize("before", [[], ["--json"]])
def test_the_short_form_of_help_is_known_everywhere(command: str, before: list[str]) -> None:
    short = parse([*command.split(), *before, "-h"])(ReportStage())

    assert isinstance(short, Document)
    assert short == parse([*command.split(), "--help"])(ReportStage())
