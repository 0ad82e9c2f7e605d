"""From a broken start to a doctor that finds nothing, by doing what the program says and nothing else."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pi_session_mcp.doctor.checks import TABLE
from pi_session_mcp.doctor.subject import UNCHECKED
from pi_session_mcp.doctor.subjects import (
    agent_directory,
    extensions,
    network,
    package,
    setup_state,
    system,
    workspaces,
)
from tests.support.environment import ensure_installed
from tests.support.extensions import install_package
from tests.support.follower import ACTS, VARIABLE, Follower, commands_in, write_pi_files
from tests.support.lasting import needs_a_lasting_checkout
from tests.support.stub_client import install_stub_clients
from tests.support.warm_program import WarmProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ELSEWHERE: Final = {
    UNCHECKED: "a defect of ours",
    system.PYTHON_VERSION_UNSUPPORTED.remedy: "no command starts on such a Python",
    system.PLATFORM_UNSUPPORTED.remedy: "another machine",
    package.REINSTALL: "the installation that the tests run in",
    agent_directory.AGENT_DIRECTORY: "the user database always knows the user of the tests",
    setup_state.REMEDIES["no_home"]: "the same",
    workspaces.OUTSIDE["runtime"]: "the installation that the tests run in",
    workspaces.OUTSIDE["state"]: "tests/unit/doctor/scenes.py",
    setup_state.REMEDIES[".mcp.json"]: "the root directory of this machine",
    setup_state.REMEDIES[".git"]: "the root directory of this machine",
    setup_state.REMEDIES[".codex"]: "the root directory of this machine",
    network.PROXY_SETTING: "tests/unit/doctor/scenes.py",
    network.PASS_VARIABLE: "tests/unit/doctor/scenes.py",
    network.EXTRA_CERTIFICATES: "tests/unit/doctor/scenes.py",
    workspaces.WORKSPACE_INSTRUCTIONS_LEFT_OUT.remedy: "tests/unit/doctor/scenes.py",
    extensions.EXTENSION_IN_WORKSPACE.remedy: "tests/unit/doctor/scenes.py",
    extensions.EXTENSION_FORM_UNSUPPORTED.remedy: "tests/unit/doctor/scenes.py",
    extensions.PACKAGE_WITHOUT_EXTENSION.remedy: "tests/unit/doctor/scenes.py",
    extensions.EXTENSION_DEPENDENCY_MISSING.remedy: "tests/unit/doctor/scenes.py",
    extensions.EXTENSION_DEPENDENCY_OUTSIDE.remedy: "tests/unit/doctor/scenes.py",
}
"""Sentences that name no command and that nobody can follow here, with the reason or the place that tries them."""

OFTEN: Final = {
    "no_configuration",
    "a_variable_with_a_relative_path_that_leads_nowhere",
    "a_configuration_that_is_a_directory",
    "a_configuration_that_is_no_json",
    "a_configuration_that_breaks_a_rule",
    "a_workspace_that_is_missing",
    "a_workspace_that_is_closed",
    "a_configured_sdk_that_is_missing",
    "models_of_pi_that_are_no_json",
    "an_unknown_provider",
    "a_provider_without_a_login",
    "an_extension_that_is_not_installed",
    "records_that_are_damaged",
    "everything_at_once",
}
"""The starts of the plain run; the others are many alike."""
LINUX_ONLY: Final = {"state_on_a_file_system_without_sure_locks"}
STARTS: dict[str, Callable[[Follower], None]] = {}


def start(arrange: Callable[[Follower], None]) -> Callable[[Follower], None]:
    """Note a broken start."""
    STARTS[arrange.__name__] = arrange
    return arrange


@start
def no_configuration(person: Follower) -> None:
    write_pi_files(person.agent_directory)


@start
def a_variable_with_a_relative_path_that_leads_nowhere(person: Follower) -> None:
    write_pi_files(person.agent_directory)
    person.environ[VARIABLE] = "absent.json"


@start
def an_empty_variable(person: Follower) -> None:
    write_pi_files(person.agent_directory)
    person.environ[VARIABLE] = ""


@start
def a_configuration_that_is_a_directory(person: Follower) -> None:
    person.configuration.mkdir(parents=True)


@start
def a_configuration_that_is_not_readable(person: Follower) -> None:
    person.write()
    person.configuration.chmod(0)


@start
def a_configuration_that_is_no_json(person: Follower) -> None:
    person.write()
    person.configuration.write_text('{"workspaces": {},\n // off\n}')


@start
def a_configuration_that_breaks_a_rule(person: Follower) -> None:
    person.write(limits={"maxSessions": 0})


@start
def a_workspace_that_is_missing(person: Follower) -> None:
    person.write()
    person.project.rmdir()


@start
def a_workspace_that_is_a_file(person: Follower) -> None:
    (person.home / "file").write_text("")
    person.write(workspaces={"app": "../../file"})


@start
def a_workspace_that_is_closed(person: Follower) -> None:
    person.write()
    person.project.chmod(0)


@start
def a_coding_workspace_that_is_read_only(person: Follower) -> None:
    profiles = person.good()["executionProfiles"]
    coder = {**profiles["reader"], "default": False, "permissionProfile": "coding"}
    person.write(executionProfiles={**profiles, "coder": coder})
    person.project.chmod(0o500)


@start
def a_coding_workspace_that_holds_the_configuration(person: Follower) -> None:
    profiles = person.good()["executionProfiles"]
    coder = {**profiles["reader"], "default": False, "permissionProfile": "coding"}
    person.write(workspaces={"app": str(person.home)}, executionProfiles={**profiles, "coder": coder})


@start
def a_configured_node_that_is_missing(person: Follower) -> None:
    person.write(runtime={"node": str(person.home / "nowhere")})


@start
def a_configured_sdk_that_is_missing(person: Follower) -> None:
    person.write(runtime={"sdk": str(person.home / "nowhere")})


@start
def models_of_pi_that_are_no_json(person: Follower) -> None:
    person.write()
    (person.agent_directory / "models.json").write_text("{,}")


@start
def a_model_of_pi_without_a_name(person: Follower) -> None:
    person.write()
    said = json.loads((person.agent_directory / "models.json").read_text())
    said["providers"]["other"] = {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "models": [{"id": ""}]}
    (person.agent_directory / "models.json").write_text(json.dumps(said))


@start
def credentials_that_are_not_readable(person: Follower) -> None:
    person.write()
    (person.agent_directory / "auth.json").chmod(0)


@start
def a_setting_of_pi_that_means_nothing(person: Follower) -> None:
    person.write()
    (person.agent_directory / "settings.json").write_text('{"httpIdleTimeoutMs": "soon"}')


@start
def an_agent_directory_that_is_read_only(person: Follower) -> None:
    person.write()
    person.agent_directory.chmod(0o500)


@start
def a_lock_that_was_left_behind(person: Follower) -> None:
    person.write()
    (person.agent_directory / "auth.json.lock").mkdir()


@start
def a_proxy_that_is_none(person: Follower) -> None:
    person.write()
    person.environ["http_proxy"] = "proxy.example:8080"


def _selecting(person: Follower, **selected: str) -> None:
    person.write(executionProfiles={"reader": {**person.good()["executionProfiles"]["reader"], **selected}})


@start
def an_unknown_provider(person: Follower) -> None:
    _selecting(person, provider="nobody")


@start
def an_unknown_model(person: Follower) -> None:
    _selecting(person, model="nothing")


@start
def a_thinking_level_that_the_model_has_not(person: Follower) -> None:
    _selecting(person, thinkingLevel="high")


@start
def a_provider_without_a_login(person: Follower) -> None:
    _selecting(person, provider="anthropic", model="claude-opus-5-5")


@start
def a_key_in_a_variable_that_is_not_set(person: Follower) -> None:
    person.write()
    (person.agent_directory / "auth.json").write_text('{"scripted": {"type": "api_key", "key": "$ABSENT"}}')


@start
def a_temporary_directory_that_is_not_there(person: Follower) -> None:
    person.write()
    person.environ["TMPDIR"] = str(person.home / "absent")


@start
def a_variable_of_pi_with_a_relative_path(person: Follower) -> None:
    person.write()
    person.environ["PI_CODING_AGENT_DIR"] = "agent"


@start
def a_variable_of_pi_that_leads_into_the_project(person: Follower) -> None:
    person.write()
    person.environ["PI_CODING_AGENT_DIR"] = str(person.project / "agent")


@start
def an_extension_that_is_not_installed(person: Follower) -> None:
    person.write(executionProfiles=person.with_extension("npm:ext@1.0.0"))


@start
def an_extension_of_another_version(person: Follower) -> None:
    person.write(executionProfiles=person.with_extension("npm:ext@1.0.0"))
    install_package(person.agent_directory, version="2.0.0")


@start
def an_extension_that_is_damaged(person: Follower) -> None:
    person.write(executionProfiles=person.with_extension("npm:ext@1.0.0"))
    (install_package(person.agent_directory) / "index.ts").unlink()


@start
def a_state_directory_that_others_can_write(person: Follower) -> None:
    person.write()
    person.state.mkdir(parents=True)
    person.state.chmod(0o777)


@start
def state_on_a_file_system_without_sure_locks(person: Follower) -> None:
    person.write()
    person.environ["XDG_STATE_HOME"] = "/proc"


@start
def records_that_are_damaged(person: Follower) -> None:
    person.write()
    person.state.mkdir(parents=True, mode=0o700)
    (person.state / "ownership.json").write_text("{")


@start
def everything_at_once(person: Follower) -> None:
    a_configuration_that_is_no_json(person)
    models_of_pi_that_are_no_json(person)
    records_that_are_damaged(person)
    person.environ["PI_CODING_AGENT_DIR"] = "agent"
    person.project.rmdir()


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProgram]:
    with WarmProgram() as warm:
        yield warm


@pytest.fixture
def person(warm: WarmProgram, tmp_path: Path) -> Iterator[Follower]:
    """Somebody with a project, a provider in Pi's files, and clients that can be registered with."""
    runtime = ensure_installed()
    stubs = install_stub_clients(tmp_path / "home", tmp_path / "programs")
    path = os.pathsep.join(map(str, (stubs.programs, runtime.node.parent, "/usr/bin", "/bin")))
    person = Follower(warm, stubs.home, {"HOME": str(stubs.home), "PATH": path})
    person.project.mkdir(parents=True)
    write_pi_files(person.agent_directory)
    yield person
    if person.project.exists():
        person.project.chmod(0o700)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.matrix) for name in STARTS]
)
def test_doing_what_the_doctor_says_ends_with_a_doctor_that_finds_nothing(name: str, person: Follower) -> None:
    if name in LINUX_ONLY and sys.platform != "linux":
        pytest.skip("only on Linux")
    assert STARTS.keys() >= OFTEN
    STARTS[name](person)

    person.follow()

    assert person.done
    assert json.loads(person.run("pi-session-mcp config check --json").out)["ok"]


def test_in_a_home_that_pi_was_never_in_the_program_leads_to_a_configuration(person: Follower) -> None:
    for name in ("models.json", "auth.json"):
        (person.agent_directory / name).unlink()
    person.agent_directory.rmdir()
    person.agent_directory.parent.rmdir()

    person.follow()

    assert "pi-session-mcp config init" in person.done


@pytest.mark.parametrize("remedy", sorted({UNCHECKED, *(remedy for row in TABLE for remedy in row.remedies)}))
def test_every_remedy_can_be_followed_here_or_is_followed_elsewhere(remedy: str) -> None:
    ways = (bool(commands_in(remedy)) or remedy in ACTS, remedy in ELSEWHERE)

    assert ways in {(True, False), (False, True)}
    assert not ELSEWHERE.get(remedy, "").endswith(".py") or (Path(__file__).parents[2] / ELSEWHERE[remedy]).exists()


@needs_a_lasting_checkout
@pytest.mark.parametrize("base", [None, "conf dir"])
def test_setup_registers_the_absolute_path_of_the_configuration_at_the_default_place(
    base: str | None, person: Follower
) -> None:
    if base is not None:
        person.environ["XDG_CONFIG_HOME"] = str(person.home / base)
    directory = person.home / (base or ".config") / "pi-session-mcp"
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(person.good()))

    applied = json.loads(person.run("pi-session-mcp setup --apply --json claude-code:user").out)

    assert applied["ok"], applied
    registered = json.loads((person.home / ".claude.json").read_text())["mcpServers"]["pi-session-mcp"]
    assert registered["env"] == {VARIABLE: str(directory / "config.json")}
