"""What each command says, in both forms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.cli import demo, runtime
from pi_session_mcp.cli.outcome import Verbatim
from pi_session_mcp.cli.render import human_text, json_report
from pi_session_mcp.cli.streams import Form
from pi_session_mcp.config.schema import load_text
from pi_session_mcp.demo.report import DemoReport, DemoStep
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.runtime.problem import RuntimeCode
from pi_session_mcp.runtime.result import InstallCode, InstallResult
from pi_session_mcp.runtime.status import Part, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Shell

FORM = Form(columns=40, colour=False, unicode=True)
VALID = {
    "workspaces": {"w": "work"},
    "executionProfiles": {
        "p": {"default": True, "permissionProfile": "read-only", "provider": "x", "model": "y", "thinkingLevel": "off"}
    },
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A valid configuration, in the directory that the shell runs in."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(VALID))
    return path


def test_config_check_gives_the_fingerprint_of_a_valid_file_named_by_a_relative_path(
    shell: Shell, config: Path
) -> None:
    told = shell.run("config", "check", env={"PI_SESSION_MCP_CONFIG": config.name})
    reported = shell.run("config", "check", "--json", env={"PI_SESSION_MCP_CONFIG": config.name})

    report = json.loads(reported.out)
    assert (told.code, told.err) == (reported.code, reported.err) == (0, "")
    assert report.keys() == {"schemaVersion", "ok", "exitCode", "fingerprint"}
    assert report["fingerprint"] in "".join(told.out.split())


def test_config_check_names_place_and_rule_of_an_invalid_file_and_never_a_value(shell: Shell, config: Path) -> None:
    config.write_text(json.dumps(VALID).replace('"off"', '"CANARY"'))

    told = shell.run("config", "check", env={"PI_SESSION_MCP_CONFIG": str(config)})
    reported = shell.run("config", "check", "--json", env={"PI_SESSION_MCP_CONFIG": str(config)})

    report = json.loads(reported.out)
    assert told.code == reported.code == report["exitCode"] == 2
    assert (report["code"], report["pointer"]) == ("invalid_thinking_level", "/executionProfiles/p/thinkingLevel")
    assert report["pointer"] in told.out
    assert "CANARY" not in told.out + told.err + reported.out + reported.err
    assert str(shell.home) not in told.out + told.err + reported.out + reported.err


def test_config_check_gives_line_and_column_of_a_syntax_error(shell: Shell, config: Path) -> None:
    config.write_text('{\n  "workspaces": {},\n  // off\n}')

    report = json.loads(shell.run("config", "check", "--json", env={"PI_SESSION_MCP_CONFIG": str(config)}).out)

    assert (report["code"], report["line"]) == ("config_invalid", 3)
    assert report["column"] >= 1
    assert "pointer" not in report


def test_config_check_without_the_variable_is_a_failed_check(shell: Shell) -> None:
    report = json.loads(shell.run("config", "check", "--json").out)

    assert (report["exitCode"], report["code"]) == (2, "config_path_required")


def test_config_schema_prints_the_shipped_schema_and_nothing_else(shell: Shell) -> None:
    ended = shell.run("config", "schema")

    assert (ended.code, ended.out, ended.err) == (0, load_text(), "")


@pytest.mark.parametrize("command", ["install", "status"])
def test_runtime_commands_refuse_a_configuration_that_is_named_and_invalid(shell: Shell, command: str) -> None:
    ended = shell.run("runtime", command, "--json", env={"PI_SESSION_MCP_CONFIG": "absent.json"})

    assert ended.code == 2
    assert json.loads(ended.out)["code"] == "config_missing"


def test_runtime_status_of_a_configured_node_that_is_not_there_is_a_failed_check(shell: Shell, config: Path) -> None:
    absent = str(shell.home / "CANARY")
    config.write_text(json.dumps({**VALID, "runtime": {"node": absent, "sdk": absent}}))

    ended = shell.run("runtime", "status", "--json", env={"PI_SESSION_MCP_CONFIG": str(config)})

    report = json.loads(ended.out)
    assert ended.code == report["exitCode"] == 2
    assert (report["status"], report["node"]["status"]) == ("node_missing", "node_missing")
    assert "CANARY" not in ended.out + ended.err


def test_runtime_status_shows_versions_and_where_they_come_from_by_name() -> None:
    seen = runtime._seen(
        Status(Part(version="24.1.0"), Part(version="1.4.0", code=RuntimeCode.PI_VERSION_UNSUPPORTED), outdated=False)
    )

    text = human_text(seen.blocks, FORM)
    assert seen.exit_status is ExitStatus.CHECK_FAILED
    assert "pi_version_unsupported" in text
    assert "1.4.0" in text
    assert "runtime install" in " ".join(text.split())


@pytest.mark.parametrize("code", list(InstallCode))
def test_every_end_of_an_install_is_told_in_both_forms(code: InstallCode) -> None:
    result = InstallResult(code)

    outcome = runtime._installed(result)

    assert json.loads(json_report(outcome))["status"] == code.value
    assert ("✓" in human_text(outcome.blocks, FORM)) == result.ok


SEEN = DemoStep("The eight tools are listed", ok=True, ms=12, detail=("-old", "+new"))
MISSED = DemoStep("The end is clean", ok=False, ms=3)


def test_the_demo_succeeds_only_if_every_step_was_seen() -> None:
    assert demo._outcome(DemoReport((SEEN,))).exit_status is ExitStatus.OK
    assert demo._outcome(DemoReport((SEEN, MISSED))).exit_status is ExitStatus.FAILURE
    assert demo._outcome(DemoReport(())).exit_status is ExitStatus.FAILURE


def test_the_demo_reports_each_step_with_name_ok_and_ms() -> None:
    report = json.loads(json_report(demo._outcome(DemoReport((SEEN, MISSED)))))

    assert report["steps"] == [
        {"name": SEEN.name, "ok": True, "ms": 12, "detail": ["-old", "+new"]},
        {"name": MISSED.name, "ok": False, "ms": 3, "detail": []},
    ]


def test_a_step_of_the_demo_shows_what_was_seen_as_it_was() -> None:
    assert Verbatim("-old\n+new") in demo._blocks(SEEN)
    assert "  -old\n  +new\n" in human_text(demo._blocks(SEEN), FORM)
