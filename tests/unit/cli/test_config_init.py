"""`config init`: a first configuration, by options and by answers."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.config.load import load
from pi_session_mcp.terms.selection import THINKING_LEVELS
from tests.support.environment import ensure_installed
from tests.support.terminal import Terminal
from tests.support.warm_program import WarmProgram
from tests.unit.cli.conftest import Ended, Shell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VARIABLE = "PI_SESSION_MCP_CONFIG"
CUSTOM = {"scripted": {"models": [{"id": "plain"}, {"id": "thinking", "reasoning": True}]}}


@dataclass(frozen=True, slots=True)
class WarmShell(Shell):
    """A shell whose commands need not start Python; those at a terminal do."""

    warm: WarmProgram

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run to the end."""
        said = self.warm.run(arguments, self.environment(env), self.home)
        return Ended(said.code, said.out, said.err)


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProgram]:
    with WarmProgram() as warm:
        yield warm


@pytest.fixture
def shell(tmp_path: Path, warm: WarmProgram) -> WarmShell:
    """A shell in an empty home."""
    return WarmShell(tmp_path, warm)


@pytest.fixture
def pi(shell: Shell) -> Path:
    """Pi's agent directory with one provider of the operator's own, in a home that has a project."""
    directory = shell.home / ".pi" / "agent"
    directory.mkdir(parents=True)
    (shell.home / "Some Project").mkdir()
    (directory / "models.json").write_text(json.dumps({"providers": CUSTOM}))
    return directory


def init(shell: Shell, *more: str, env: dict[str, str] | None = None) -> Ended:
    """`config init` with a workspace, as JSON."""
    return shell.run("config", "init", "--workspace", "app=~/Some Project", "--json", *more, env=env)


def report(ended: Ended) -> dict[str, Any]:
    """The one JSON object."""
    said: dict[str, Any] = json.loads(ended.out)
    assert said["exitCode"] == ended.code
    assert ended.err == ""
    return said


@pytest.mark.usefixtures("pi")
def test_options_make_a_configuration_that_loads_and_that_only_its_owner_can_read(shell: Shell) -> None:
    made = report(init(shell, "--model", "thinking", "--coding", "--output", "c.json"))

    configuration = load(shell.home / "c.json")
    assert made["fingerprint"] == configuration.fingerprint
    assert (made["ok"], made["provider"], made["model"], made["thinkingLevel"]) == (
        *(True, "scripted", "thinking"),
        "medium",
    )
    assert made["modelKnown"] is True
    assert configuration.workspaces == {"app": shell.home / "Some Project"}
    assert configuration.default_profile == "read-only"
    assert configuration.execution_profiles["coding"].permission_profile == "coding"
    assert stat.S_IMODE((shell.home / "c.json").stat().st_mode) == 0o600
    assert [path.name for path in shell.home.glob(".c.json*")] == []


@pytest.mark.usefixtures("pi")
def test_without_coding_no_profile_may_change_files(shell: Shell) -> None:
    init(shell, "--model", "plain", "--output", "c.json")

    profiles = load(shell.home / "c.json").execution_profiles.values()
    assert [profile.permission_profile for profile in profiles] == ["read-only"]


@pytest.mark.usefixtures("pi")
@pytest.mark.parametrize("there", ["file", "dangling link", "directory"])
def test_nothing_that_is_there_is_written_over(shell: Shell, there: str) -> None:
    place = shell.home / "c.json"
    if there == "file":
        place.write_text("mine")
    elif there == "dangling link":
        place.symlink_to(shell.home / "elsewhere.json")
    else:
        place.mkdir()

    refused = report(init(shell, "--model", "plain", "--output", "c.json"))

    assert (refused["exitCode"], refused["code"]) == (1, "config_exists")
    assert not (shell.home / "elsewhere.json").exists()
    assert there != "file" or place.read_text() == "mine"


@pytest.mark.usefixtures("pi")
def test_the_variable_names_the_file_and_without_it_there_is_a_usual_place(shell: Shell) -> None:
    named = init(shell, "--model", "plain", env={VARIABLE: "named.json"})
    usual = shell.run("config", "init", "--workspace", "app=Some Project", "--model", "plain")

    assert named.code == usual.code == 0
    assert load(shell.home / "named.json")
    assert load(shell.home / ".config" / "pi-session-mcp" / "config.json")
    assert "PI_SESSION_MCP_CONFIG" not in usual.out
    assert str(shell.home) not in named.out + usual.out


@pytest.mark.usefixtures("pi")
def test_what_was_written_is_what_the_other_commands_read_without_a_variable(shell: Shell) -> None:
    assert init(shell, "--model", "plain").code == 0

    checked = report(shell.run("config", "check", "--json"))
    assert (checked["ok"], checked["source"]) == (True, "default_place")
    assert "read from   the default place" in shell.run("config", "check").out
    assert report(shell.run("extensions", "check", "--json"))["extensions"] == []
    examined = json.loads(shell.run("doctor", "--json").out)
    assert examined["configurationSource"] == "default_place"
    assert {one["id"] for one in examined["checks"] if one["subject"] == "app"} >= {"workspace_missing"}


@pytest.mark.usefixtures("pi")
def test_the_variable_comes_before_the_default_place_and_is_named(shell: Shell) -> None:
    init(shell, "--model", "plain")
    init(shell, "--model", "thinking", "--output", "c.json")
    fingerprint = load(shell.home / "c.json").fingerprint

    checked = report(shell.run("config", "check", "--json", env={VARIABLE: "c.json"}))

    assert checked["fingerprint"] == fingerprint
    assert "source" not in checked
    assert "the configuration, from PI_SESSION_MCP_CONFIG" in shell.run("doctor", env={VARIABLE: "c.json"}).out


@pytest.mark.usefixtures("pi")
def test_a_file_that_no_command_would_look_for_is_said_to_need_the_variable(shell: Shell) -> None:
    made = shell.run("config", "init", "--workspace", "app=.", "--model", "plain", "--output", "c.json")

    assert "Set PI_SESSION_MCP_CONFIG to the absolute path of this file" in " ".join(made.out.split())


def test_a_default_file_that_is_refused_refuses_every_command_that_reads_it(shell: Shell) -> None:
    place = shell.home / ".config" / "pi-session-mcp" / "config.json"
    place.parent.mkdir(parents=True)
    place.write_text("{ CANARY")

    for command in (("config", "check"), ("extensions", "check"), ("runtime", "status"), ("runtime", "install")):
        ended = shell.run(*command, "--json")
        said = report(ended)
        assert (said["exitCode"], said["code"], said["source"]) == (2, "config_invalid", "default_place"), command
        assert "config check" in said["remediation"]
        assert "CANARY" not in ended.out


def test_a_directory_that_is_not_there_is_not_made(shell: Shell, pi: Path) -> None:
    refused = report(init(shell, "--model", "plain", "--output", "absent/c.json"))

    assert (refused["exitCode"], refused["code"]) == (1, "config_unwritable")
    assert not (shell.home / "absent").exists()
    assert pi.exists()


@pytest.mark.parametrize("words", [("--output", "~/c.json"), ("--output=~/c.json",)])
def test_a_home_that_the_shell_has_not_put_in_is_put_in(words: tuple[str, ...], shell: Shell, pi: Path) -> None:
    written = report(init(shell, "--model", "plain", *words))

    assert written["ok"], written
    assert (shell.home / "c.json").is_file()
    assert pi.exists()


def test_what_is_missing_without_a_terminal_is_refused_with_the_names_to_choose_from(shell: Shell, pi: Path) -> None:
    model = report(init(shell))
    (pi / "auth.json").write_text('{"anthropic": {"type": "api_key", "key": "CANARY"}}')
    provider = init(shell)
    workspace = report(shell.run("config", "init", "--json"))

    assert (model["exitCode"], model["code"]) == (64, "model_required")
    assert model["valid"] == {"models": ["plain", "thinking"]}
    assert report(provider)["code"] == "provider_required"
    assert report(provider)["valid"] == {"providers": ["anthropic", "scripted"]}
    assert "CANARY" not in provider.out
    assert workspace["code"] == "workspace_required"


@pytest.mark.parametrize("text", ["app", "=.", "app=", "app=/absent/directory", "app=~nobody-of-that-name/x"])
def test_a_workspace_that_is_no_alias_with_a_directory_is_misuse(shell: Shell, text: str) -> None:
    refused = report(shell.run("config", "init", "--json", "--workspace", text, "--provider", "p", "--model", "m"))

    assert (refused["exitCode"], refused["code"]) == (64, "workspace_invalid")


def test_an_alias_that_a_configuration_may_not_have_is_refused_by_the_rules_of_configurations(shell: Shell) -> None:
    refused = report(
        shell.run(
            "config", "init", "--json", "--workspace", "App=.", "--provider", "p", "--model", "m", "--output", "c"
        )
    )

    assert (refused["exitCode"], refused["code"]) == (2, "config_invalid")
    assert not (shell.home / "c").exists()


@pytest.mark.usefixtures("pi")
def test_one_alias_names_one_workspace_only(shell: Shell) -> None:
    assert report(init(shell, "--workspace", "app=.", "--model", "plain"))["code"] == "workspace_invalid"


@pytest.mark.usefixtures("pi")
def test_a_thinking_level_is_checked_and_the_valid_ones_are_named(shell: Shell) -> None:
    refused = report(init(shell, "--model", "plain", "--thinking-level", "deep"))

    assert (refused["exitCode"], refused["code"]) == (64, "thinking_level_invalid")
    assert refused["valid"] == {"levels": list(THINKING_LEVELS)}


@pytest.mark.usefixtures("pi")
def test_a_model_that_pi_does_not_name_is_taken_with_a_note_if_it_is_said_twice(shell: Shell) -> None:
    names = ("--provider", "other", "--model", "new", "--output", "c.json")
    refused = report(init(shell, *names))
    made = report(init(shell, *names, "--allow-unlisted"))

    assert (refused["exitCode"], refused["code"]) == (64, "provider_unlisted")
    assert (made["ok"], made["modelKnown"], made["thinkingLevel"]) == (True, False, "medium")


@pytest.mark.usefixtures("pi")
@pytest.mark.parametrize(
    ("names", "code", "nearest"),
    [
        (("--provider", "scriptde", "--model", "plain"), "provider_unlisted", ["scripted"]),
        (("--provider", "Scripted", "--model", "plain"), "provider_unlisted", ["scripted"]),
        (("--model", "palin"), "model_unlisted", ["plain"]),
        (("--model", "plain", "--thinking-level", "high"), "thinking_level_unlisted", None),
        (("--model", "plain", "--thinking-level", "hihg"), "thinking_level_invalid", ["high", "xhigh"]),
    ],
)
def test_a_name_that_is_in_no_list_is_refused_with_the_nearest(
    shell: Shell, names: tuple[str, ...], code: str, nearest: list[str] | None
) -> None:
    refused = report(init(shell, *names, "--output", "c.json"))

    assert (refused["exitCode"], refused["code"]) == (64, code)
    assert refused.get("nearest") == nearest
    assert not (shell.home / "c.json").exists()


def test_in_a_fresh_home_all_that_the_catalogue_has_is_listed_and_can_be_chosen(shell: Shell) -> None:
    ensure_installed()
    provider = report(shell.run("config", "init", "--workspace", "app=.", "--json"))
    model = report(shell.run("config", "init", "--workspace", "app=.", "--provider", "anthropic", "--json"))
    named = ("--provider", "anthropic", "--model", model["valid"]["models"][0])
    made = shell.run("config", "init", "--workspace", "app=.", *named)

    assert provider["code"] == "provider_required"
    assert {"anthropic", "openai", "google"} <= set(provider["valid"]["providers"])
    assert model["code"] == "model_required"
    assert made.code == 0
    assert "/login" in made.out
    assert "workspace   app" in made.out
    assert not (shell.home / ".pi").exists()


def test_what_was_written_is_shown_by_its_aliases(shell: Shell, pi: Path) -> None:
    assert pi.exists()
    made = report(init(shell, "--workspace", "other=.", "--model", "plain", "--coding"))

    assert (made["workspaces"], made["executionProfiles"]) == (["app", "other"], ["read-only", "coding"])
    assert made["loginKnown"] is True


def test_what_pi_starts_with_is_taken_where_nobody_is_asked(shell: Shell, pi: Path) -> None:
    settings = {"defaultProvider": "scripted", "defaultModel": "thinking", "defaultThinkingLevel": "high"}
    (pi / "settings.json").write_text(json.dumps(settings))

    made = report(init(shell, "--output", "c.json"))

    assert (made["model"], made["thinkingLevel"]) == ("thinking", "high")


def test_an_agent_directory_that_only_a_variable_names_is_written_down(shell: Shell, pi: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}-pi"
    pi.rename(elsewhere)

    init(shell, "--model", "plain", "--output", "c.json", env={"PI_CODING_AGENT_DIR": str(elsewhere)})

    assert load(shell.home / "c.json").pi_agent_directory == elsewhere


@pytest.mark.usefixtures("pi")
def test_at_a_terminal_only_what_is_not_clear_is_asked(shell: Shell) -> None:
    with _asked(shell, "config", "init", "--output", "c.json") as terminal:
        terminal.read_until(": ")
        terminal.type("absent\n")
        terminal.read_until("no directory.")
        terminal.type("Some Project\n")
        questions = terminal.read_until("Model, by number or name: ")
        terminal.type("2\n")
        code, out = terminal.ended()

    configuration = load(shell.home / "c.json")
    assert code == 0
    assert "Provider" not in questions
    assert configuration.workspaces == {"some-project": shell.home / "Some Project"}
    assert configuration.execution_profiles["read-only"].model == "thinking"
    assert out.decode().startswith("✓")
    assert "workspace   some-project" in out.decode()


@pytest.mark.usefixtures("pi")
def test_at_a_terminal_a_name_that_is_in_no_list_counts_when_it_is_typed_again(shell: Shell) -> None:
    with _asked(shell, "config", "init", "--workspace", "app=.", "--model", "palin", "--output", "c.json") as terminal:
        first = terminal.read_until("Model, by number or name: ")
        terminal.type("other\n")
        second = terminal.read_until("Model, by number or name: ")
        terminal.type("other\n")
        code, _ = terminal.ended()

    assert "1  plain" in first
    assert all("Type it again to use it all the same." in text for text in (first, second))
    assert code == 0
    assert load(shell.home / "c.json").execution_profiles["read-only"].model == "other"


def test_at_a_terminal_in_a_fresh_home_the_whole_catalogue_can_be_chosen_from(shell: Shell) -> None:
    ensure_installed()
    (shell.home / "shop").mkdir()
    with _asked(shell, "config", "init") as terminal:
        terminal.read_until("]: ")
        terminal.type("shop\n")
        providers = terminal.read_until("Provider, by number or name: ")
        terminal.type("anthr\n")
        alike = terminal.read_until("Provider, by number or name: ")
        terminal.type("1\n")
        models = terminal.read_until("Model, by number or name: ")
        terminal.type("2\n")
        code, out = terminal.ended()

    profile = load(shell.home / ".config" / "pi-session-mcp" / "config.json").execution_profiles["read-only"]
    assert code == 0
    assert "anthropic" in providers
    assert "zai" in providers
    assert "1  anthropic" in alike
    assert "openai" not in alike
    assert f"2  {profile.model}" in models
    assert profile.provider == "anthropic"
    assert "/login" in out.decode()


@pytest.mark.usefixtures("pi")
def test_an_answer_that_never_comes_is_a_missing_name(shell: Shell) -> None:
    with _asked(shell, "config", "init", "--workspace", "app=.", "--output", "c.json") as terminal:
        terminal.read_until("Model, by number or name: ")
        terminal.type("\x04")
        terminal.read_until("Try:")
        code, _ = terminal.ended()

    assert code == 64
    assert not (shell.home / "c.json").exists()


@pytest.mark.usefixtures("pi")
def test_ctrl_c_at_a_question_leaves_nothing_behind(shell: Shell) -> None:
    with _asked(shell, "config", "init", "--workspace", "app=.", "--output", "c.json") as terminal:
        terminal.read_until("Model, by number or name: ")
        terminal.process.send_signal(2)
        terminal.read_until("\npi-session-mcp: Interrupted.")
        code, _ = terminal.ended()

    assert code == 130
    assert not (shell.home / "c.json").exists()


def _asked(shell: Shell, *arguments: str) -> Terminal:
    environment = {**shell.environment(), "TERM": "dumb", "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"}
    assert os.path.isabs(environment["HOME"])
    return Terminal(shell.argv(*arguments), environment, shell.home, split=True)
