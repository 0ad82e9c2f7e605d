"""`extensions check`, in both forms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.extensions import install_package

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Shell

BASE = {"permissionProfile": "read-only", "provider": "x", "model": "y", "thinkingLevel": "off"}


def configure(home: Path, *pins: str, **more: Any) -> dict[str, str]:
    profile = {**BASE, "default": True, "extensions": list(pins)}
    said = {"workspaces": {"w": "work"}, "executionProfiles": {"p": profile}, **more}
    (home / "config.json").write_text(json.dumps(said))
    return {"PI_SESSION_MCP_CONFIG": str(home / "config.json")}


def test_each_pin_has_its_line_and_a_fault_its_way_out(shell: Shell) -> None:
    install_package(shell.home / ".pi" / "agent", "good")
    env = configure(shell.home, "npm:missing@1.0.0", "npm:good@1.0.0")

    told = shell.run("extensions", "check", env=env)
    reported = shell.run("extensions", "check", "--json", env=env)

    report = json.loads(reported.out)
    assert (told.code, told.err) == (reported.code, reported.err) == (2, "")
    assert report.keys() == {"schemaVersion", "ok", "exitCode", "extensions"}
    good, missing = report["extensions"]
    assert good == {"profile": "p", "name": "good", "version": "1.0.0", "status": "ok"}
    assert missing.keys() == {*good, "remediation"}
    assert missing["status"] == "extension_not_installed"
    assert "p: good@1.0.0" in told.out
    assert "p: missing@1.0.0 extension_not_installed" in told.out
    assert str(shell.home) not in told.out + reported.out


def test_the_reason_is_said_where_a_code_has_several(shell: Shell) -> None:
    install_package(shell.home / ".pi" / "agent", "skills", pi={"skills": ["./skills"]})
    env = configure(shell.home, "npm:skills@1.0.0")

    (found,) = json.loads(shell.run("extensions", "check", "--json", env=env).out)["extensions"]

    assert (found["status"], found["reason"]) == ("extension_load_failed", "package_without_extension")
    told = shell.run("extensions", "check", env=env)
    assert "p: skills@1.0.0 extension_load_failed package_without_extension" in told.out
    assert told.code == 2


def test_a_missing_dependency_is_a_warning_with_a_status_of_its_own(shell: Shell) -> None:
    install_package(shell.home / ".pi" / "agent", "good", dependencies={"gone": "1"})
    env = configure(shell.home, "npm:good@1.0.0")

    ended = shell.run("extensions", "check", "--json", env=env)

    report = json.loads(ended.out)
    (found,) = report["extensions"]
    assert (ended.code, report["ok"]) == (1, False)
    assert (found["status"], found["reason"]) == ("ok", "extension_dependency_missing")


@pytest.mark.parametrize("pins", [(), ("npm:good@1.0.0",)])
def test_when_all_is_fine_the_exit_status_is_0(shell: Shell, pins: tuple[str, ...]) -> None:
    install_package(shell.home / ".pi" / "agent", "good")

    assert shell.run("extensions", "check", env=configure(shell.home, *pins)).code == 0
    report = json.loads(shell.run("extensions", "check", "--json", env=configure(shell.home, *pins)).out)
    assert (report["ok"], len(report["extensions"])) == (True, len(pins))


def test_pis_agent_directory_is_the_servers(shell: Shell) -> None:
    install_package(shell.home / "configured", "good")
    env = configure(shell.home, "npm:good@1.0.0", piAgentDirectory="configured")

    assert shell.run("extensions", "check", env=env).code == 0


def test_an_invalid_configuration_is_said_as_config_check_says_it(shell: Shell) -> None:
    env = configure(shell.home, "npm:good@^1.0.0")

    checked = shell.run("extensions", "check", "--json", env=env)

    assert checked.code == 2
    assert json.loads(checked.out) == json.loads(shell.run("config", "check", "--json", env=env).out)


@pytest.mark.parametrize("arguments", [("extensions",), ("extensions", "chek"), ("extensions", "check", "--no")])
def test_misuse_is_64_and_names_what_is_valid(shell: Shell, arguments: tuple[str, ...]) -> None:
    report = json.loads(shell.run(*arguments, "--json").out)

    assert (report["exitCode"], report["code"]) == (64, "usage")
    assert report["valid"]


def test_nothing_of_a_package_is_run(shell: Shell) -> None:
    source = 'require("node:fs").writeFileSync("ran", "");'
    directory = install_package(shell.home / ".pi" / "agent", "good", files={"index.ts": source})

    shell.run("extensions", "check", env=configure(shell.home, "npm:good@1.0.0"))

    assert not (shell.home / "ran").exists()
    assert sorted(path.name for path in directory.iterdir()) == ["index.ts", "package.json"]
