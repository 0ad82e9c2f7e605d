"""The command line of setup, up to where clients begin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.cli.app import main
from pi_session_mcp.cli.outcome import Facts
from pi_session_mcp.cli.setup import _finding, complete_target
from pi_session_mcp.setup.messages import APPLY_REGISTERS, REWRITES_ITS_FILE
from pi_session_mcp.setup.result import Conclusion, Finding, Operation, SetupCode, Status
from pi_session_mcp.setup.targets import parse

if TYPE_CHECKING:
    from pathlib import Path


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status = main(["setup", *arguments, "--json"])
    told = capsys.readouterr()
    assert told.err == ""
    parsed: dict[str, Any] = json.loads(told.out)
    assert parsed["exitCode"] == status
    return status, parsed


@pytest.mark.parametrize(
    ("arguments", "code", "valid"),
    [
        (("--apply",), "usage_invalid", "codex:user"),
        (("--apply", "--remove", "codex:user"), "usage_invalid", "--rebind"),
        (("codex:local",), "target_invalid", "claude-code:local"),
        (("codex:user", "CANARY"), "target_invalid", "copilot:user"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_names_what_can(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: str, valid: str
) -> None:
    status, told = report(capsys, *arguments)
    assert (status, told["code"]) == (64, code)
    assert valid in [name for names in told["valid"].values() for name in names]
    assert "CANARY" not in json.dumps(told)


def test_an_unknown_option_is_misuse_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = report(capsys, "--install", "codex:user")
    assert (status, told["code"]) == (64, "usage")
    assert "--apply" in told["valid"]["options"]


@pytest.mark.parametrize("home", ["", "relative"])
def test_without_a_home_every_target_is_told_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("HOME", home)
    status, told = report(capsys, "--remove", "codex:user", "claude-code:user", "codex:user")
    assert (status, told["operation"], told["status"]) == (1, "remove", "failed")
    assert [found["code"] for found in told["findings"]] == ["home_unavailable"] * 2


def test_a_person_is_told_what_it_means_and_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PI_SESSION_MCP_CONFIG", "")
    assert main(["setup", "--apply", "codex:user"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "codex:user: PI_SESSION_MCP_CONFIG names no configuration" in told
    assert "config_required" in told
    assert "Set PI_SESSION_MCP_CONFIG" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("operation", "says"), [(Operation.DRY_RUN, True), (Operation.REMOVE, False)])
def test_only_a_look_at_what_is_absent_says_how_to_have_it(operation: Operation, *, says: bool) -> None:
    finding = Finding(parse("codex:user"), Conclusion(Status.ABSENT, SetupCode.ABSENT))
    told = [row for block in _finding(finding, operation) if isinstance(block, Facts) for row in block.rows]
    assert (("do", APPLY_REGISTERS) in told, ("note", REWRITES_ITS_FILE) in told) == (says, says)


def test_targets_are_completed() -> None:
    assert complete_target("claude-code:") == ["claude-code:user", "claude-code:project", "claude-code:local"]
