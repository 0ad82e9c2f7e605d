"""Without a target setup shows all of them: what is registered where, and under which configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.cli.app import main
from pi_session_mcp.setup.targets import ALL_TARGETS
from tests.support.setup_worlds import Operator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.setup_worlds import Driver

EVERY = [target.short for target in ALL_TARGETS]


@pytest.fixture
def operator(tmp_path: Path, driver: Driver) -> Operator:
    return Operator(tmp_path, driver)


def told(operator: Operator, **more: object) -> tuple[dict[str, tuple[str, str | None]], str, int]:
    """Code and configuration by target; the status of all; the exit status."""
    answer = operator.setup("overview", **{"targets": EVERY, **more})
    found = {
        f"{one['target']['client']}:{one['target']['scope']}": (one["code"], one.get("configuration"))
        for one in answer["findings"]
    }
    assert list(found) == EVERY
    return found, answer["status"], answer["exitCode"]


def test_each_target_is_shown_with_what_is_there(operator: Operator) -> None:
    operator.setup("apply", targets=["claude-code:user", "codex:user"])
    found, status, code = told(operator)
    assert {name: one for name, one in found.items() if one != ("absent", None)} == {
        "claude-code:user": ("equivalent", "same"),
        "codex:user": ("equivalent", "same"),
    }
    assert (status, code) == ("planned", 0)


def test_another_configuration_is_told_by_relation_and_not_by_its_path(operator: Operator) -> None:
    operator.setup("apply", targets=["claude-code:user"])
    (operator.root / "other.json").write_text("{}")
    for named in (str(operator.root / "other.json"), None):
        environ = {**operator.environ, "PI_SESSION_MCP_CONFIG": named or ""}
        found, status, code = told(operator, environ=environ, clean=False)
        assert found["claude-code:user"] == ("registration_fingerprint_mismatch", "another")
        assert (status, code) == ("divergent", 1)


def test_a_foreign_registration_is_shown_as_one(operator: Operator) -> None:
    document = json.loads(operator.claude_file.read_text())
    document["mcpServers"]["pi-session-mcp"] = {"type": "stdio", "command": "/opt/other", "args": ["serve"], "env": {}}
    operator.claude_file.write_text(json.dumps(document))
    found, status, code = told(operator)
    assert (found["claude-code:user"], status, code) == (("divergent", None), "divergent", 1)


def test_clients_that_are_not_installed_are_no_failure(operator: Operator) -> None:
    for client in ("codex", "copilot"):
        (operator.root / "programs" / client).unlink()
    answer = operator.setup("overview", targets=EVERY)
    missing = [one for one in answer["findings"] if one["code"] == "client_missing"]
    assert [(one["target"]["client"], one["status"]) for one in missing] == [("codex", "absent"), ("copilot", "absent")]
    assert (answer["status"], answer["exitCode"]) == ("planned", 0)


def test_a_scope_that_means_nothing_here_is_no_failure(operator: Operator) -> None:
    (operator.root / ".git").mkdir()
    found, status, code = told(operator)
    assert (found["claude-code:local"], status, code) == (("client_unsupported", None), "planned", 0)


def test_it_writes_nothing_of_ours(operator: Operator) -> None:
    told(operator)
    assert not operator.state.parent.exists()


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_the_command_without_a_target_is_the_overview(
    options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)

    assert main(["setup", *options, "--json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    assert (answer["operation"], answer["status"]) == ("overview", "planned")
    assert [one["code"] for one in answer["findings"]] == ["client_missing"] * len(EVERY)

    assert main(["setup", *options]) == 0
    said = capsys.readouterr().out
    assert "The client's program is not on PATH." in said
    assert "pi-session-mcp setup --apply TARGET" in said
