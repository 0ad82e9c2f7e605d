"""For each check of the table and each of its remedies: an arrangement that has it found, and the remedy, followed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pi_session_mcp.doctor.subjects import (
    agent_directory,
    configuration,
    extensions,
    network,
    node,
    package,
    profiles,
    runtime,
    setup_state,
    system,
    workspaces,
)
from tests.support.extensions import install_package
from tests.support.installation import METADATA, Installation, write_metadata
from tests.support.pi_answers import WELL, YES, answers, judged
from tests.support.runtimes import node_wheel, program, sdk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_session_mcp.doctor.subject import Row


@dataclass(frozen=True)
class Scene:
    """What is broken, how, and how it is mended."""

    row: Row
    remedy: str
    breaks: Callable[[Installation], None]
    mends: Callable[[Installation], None]
    only_on: str = ""

    @property
    def name(self) -> str:
        """For the test's name."""
        return f"{self.row.id}-{self.breaks.__name__.strip('_')}"


SCENES: list[Scene] = []


def scene(
    what: Row, remedy: str, mends: Callable[[Installation], None], *, only_on: str = ""
) -> Callable[[Callable[[Installation], None]], Callable[[Installation], None]]:
    """Note an arrangement."""

    def note(breaks: Callable[[Installation], None]) -> Callable[[Installation], None]:
        SCENES.append(Scene(what, remedy, breaks, mends, only_on))
        return breaks

    return note


def _reinstall(here: Installation) -> None:
    shutil.rmtree(here.package)
    (here.package / "pi_session_mcp").mkdir(parents=True)
    (here.package / "pi_session_mcp" / "__init__.py").write_text("")
    write_metadata(here.package)


@scene(system.PYTHON_VERSION_UNSUPPORTED, system.PYTHON_VERSION_UNSUPPORTED.remedy, _reinstall)
def _a_package_for_a_newer_python(here: Installation) -> None:
    write_metadata(here.package, METADATA.replace("3.11", "3.99"))


def _on_linux(here: Installation) -> None:
    here.platform = sys.platform


@scene(system.PLATFORM_UNSUPPORTED, system.PLATFORM_UNSUPPORTED.remedy, _on_linux)
def _another_system(here: Installation) -> None:
    here.platform = "sunos5"


@scene(package.PACKAGE_METADATA_UNREADABLE, package.REINSTALL, _reinstall)
def _no_metadata(here: Installation) -> None:
    shutil.rmtree(here.package / "pi_session_mcp-0.1.0.dist-info")


@scene(package.PACKAGE_METADATA_UNREADABLE, package.REINSTALL, _reinstall)
def _metadata_of_another_package(here: Installation) -> None:
    write_metadata(here.package, METADATA.replace("pi-session-mcp", "other"))


@scene(package.PACKAGE_METADATA_UNREADABLE, package.REINSTALL, _reinstall)
def _metadata_that_is_a_fifo(here: Installation) -> None:
    path = here.package / "pi_session_mcp-0.1.0.dist-info" / "METADATA"
    path.unlink()
    os.mkfifo(path)


@scene(package.PACKAGE_METADATA_UNREADABLE, package.REINSTALL, _reinstall)
def _metadata_of_two_releases(here: Installation) -> None:
    (here.package / "pi_session_mcp-0.0.9.dist-info").mkdir()


@scene(package.PACKAGE_METADATA_UNREADABLE, package.REINSTALL, _reinstall)
def _damaged_record(here: Installation) -> None:
    (here.package / "pi_session_mcp-0.1.0.dist-info" / "RECORD").write_bytes(b'\xff"')


@scene(package.PACKAGE_MODIFIED, package.REINSTALL, _reinstall)
def _changed_file(here: Installation) -> None:
    (here.package / "pi_session_mcp" / "__init__.py").write_text("# changed")


@scene(package.PACKAGE_MODIFIED, package.REINSTALL, _reinstall)
def _deleted_file(here: Installation) -> None:
    (here.package / "pi_session_mcp" / "__init__.py").unlink()


def _install_node(here: Installation) -> None:
    here.node = here.node_program()
    here.record_runtime_again()


@scene(node.NODE_MISSING, node.NODE, _install_node)
def _recorded_node_gone(here: Installation) -> None:
    here.node.unlink()


@scene(node.NODE_MISSING, node.NODE, _install_node)
def _recorded_node_fails(here: Installation) -> None:
    program(here.node, "exit 1")


@scene(node.NODE_MISSING, node.RUNTIME, _install_node)
def _recorded_node_gone_and_another_at_hand(here: Installation) -> None:
    here.node.unlink()
    node_wheel(here.prefix)


@scene(node.NODE_VERSION_UNSUPPORTED, node.RUNTIME, _install_node)
def _recorded_node_replaced_by_an_old_one_and_another_at_hand(here: Installation) -> None:
    program(here.node, "echo v20.11.0")
    node_wheel(here.prefix)


def _remove_runtime_section(here: Installation) -> None:
    here.configure()


def _name_a_node(here: Installation) -> None:
    here.configure(runtime={"node": str(here.node_program(here.root / "opt" / "other-node", "v22.19.0"))})


@scene(node.NODE_MISSING, node.CONFIGURED_NODE, _remove_runtime_section)
@scene(node.NODE_MISSING, node.CONFIGURED_NODE, _name_a_node)
def _configured_node_absent(here: Installation) -> None:
    here.configure(runtime={"node": str(here.root / "nowhere")})


@scene(node.NODE_VERSION_UNSUPPORTED, node.NODE_VERSION, _install_node)
def _recorded_node_became_older(here: Installation) -> None:
    program(here.node, "echo v22.18.9")


@scene(node.NODE_VERSION_UNSUPPORTED, node.CONFIGURED_NODE, _name_a_node)
def _configured_node_too_old(here: Installation) -> None:
    here.configure(runtime={"node": str(program(here.root / "opt" / "old-node", "echo v20.11.0"))})


def _runtime_install(here: Installation) -> None:
    shutil.rmtree(here.prefix / "share", ignore_errors=True)
    here.record_runtime_again()


@scene(runtime.PI_RUNTIME_MISSING, node.RUNTIME, _runtime_install)
def _sdk_deleted(here: Installation) -> None:
    shutil.rmtree(here.runtime / "node_modules" / "@earendil-works")


@scene(runtime.PI_RUNTIME_MISSING, node.RUNTIME, _runtime_install)
def _ripgrep_of_the_install_deleted(here: Installation) -> None:
    shutil.rmtree(here.runtime / "node_modules" / "@vscode")


@scene(runtime.PI_RUNTIME_MISSING, node.RUNTIME, _runtime_install)
def _record_damaged(here: Installation) -> None:
    (here.prefix / "share" / "pi-session-mcp" / "runtime.json").write_text("[" * 10_000)


@scene(runtime.PI_RUNTIME_MISSING, runtime.CONFIGURED_SDK, _remove_runtime_section)
def _configured_sdk_absent(here: Installation) -> None:
    here.configure(runtime={"sdk": str(here.root / "nowhere")})


@scene(runtime.PI_VERSION_UNSUPPORTED, node.RUNTIME, _runtime_install)
def _installed_sdk_too_new(here: Installation) -> None:
    sdk(here.runtime / "node_modules" / "@earendil-works" / "pi-coding-agent", "1.7.0")


def _name_an_sdk(here: Installation) -> None:
    here.configure(runtime={"sdk": str(sdk(here.root / "opt" / "whole-sdk", "1.5.2"))})


@scene(runtime.PI_VERSION_UNSUPPORTED, runtime.CONFIGURED_SDK, _name_an_sdk)
def _configured_sdk_too_old(here: Installation) -> None:
    here.configure(runtime={"sdk": str(sdk(here.root / "opt" / "sdk", "1.5.1"))})


def _unset_the_agent_directory(here: Installation) -> None:
    del here.environ["PI_CODING_AGENT_DIR"]
    here.configure(piAgentDirectory=str(here.agent_directory))


def _absolute_agent_directory(here: Installation) -> None:
    here.environ["PI_CODING_AGENT_DIR"] = str(here.agent_directory)


@scene(
    agent_directory.PI_AGENT_DIRECTORY_IGNORED,
    agent_directory.VARIABLE_REMEDIES["not_absolute"],
    _absolute_agent_directory,
)
@scene(
    agent_directory.PI_AGENT_DIRECTORY_IGNORED,
    agent_directory.VARIABLE_REMEDIES["not_absolute"],
    _unset_the_agent_directory,
)
def _relative_agent_directory(here: Installation) -> None:
    here.environ["PI_CODING_AGENT_DIR"] = ".pi/agent"


@scene(
    agent_directory.PI_AGENT_DIRECTORY_IGNORED,
    agent_directory.VARIABLE_REMEDIES["in_project"],
    _unset_the_agent_directory,
)
def _agent_directory_in_the_working_directory(here: Installation) -> None:
    here.environ["PI_CODING_AGENT_DIR"] = str(here.cwd / "agent")


def _write_pi_files(here: Installation) -> None:
    for name, text in (("models", '{"providers": {}}'), ("auth", "{}"), ("settings", "{}")):
        (here.agent_directory / f"{name}.json").unlink(missing_ok=True)
        (here.agent_directory / f"{name}.json").write_text(text)


def _remove_pi_files(here: Installation) -> None:
    for name in ("models", "auth", "settings"):
        (here.agent_directory / f"{name}.json").unlink(missing_ok=True)


@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["not_json"], _write_pi_files)
@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["not_json"], _remove_pi_files)
def _trailing_comma_in_models(here: Installation) -> None:
    here.use_a_real_node()
    (here.agent_directory / "models.json").write_text('{"providers": {"x": {"apiKey": "CANARY",}}}')


@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["not_json"], _remove_pi_files)
def _nested_models(here: Installation) -> None:
    here.use_a_real_node()
    (here.agent_directory / "models.json").write_text("[" * 100_000)


@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["not_json"], _write_pi_files)
def _list_in_auth(here: Installation) -> None:
    here.use_a_real_node()
    (here.agent_directory / "auth.json").write_text("[]")


@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["unreadable"], _write_pi_files)
def _auth_without_permission(here: Installation) -> None:
    here.use_a_real_node()
    (here.agent_directory / "auth.json").chmod(0)


@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["unreadable"], _write_pi_files)
def _auth_that_is_a_fifo(here: Installation) -> None:
    here.use_a_real_node()
    (here.agent_directory / "auth.json").unlink()
    os.mkfifo(here.agent_directory / "auth.json")


@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["refused"], _remove_pi_files)
def _setting_of_another_type(here: Installation) -> None:
    here.use_a_real_node()
    (here.agent_directory / "settings.json").write_text('{"httpIdleTimeoutMs": -1}')


def _say_that_all_is_well(here: Installation) -> None:
    here.say(answers(WELL))


@scene(agent_directory.PI_CONFIGURATION_INVALID, agent_directory.FILE_REMEDIES["refused"], _say_that_all_is_well)
def _entry_that_pi_refuses(here: Installation) -> None:
    here.say(answers(faults=["models_refused"]))


@scene(network.PROXY_INVALID, network.PROXY_INVALID.remedy, _say_that_all_is_well)
def _proxy_that_is_none(here: Installation) -> None:
    here.say(answers(proxies=False))


def _name_the_proxy_in_pis_settings(here: Installation) -> None:
    here.say(answers(WELL, proxy_setting=True))


def _name_the_variable_for_codex(here: Installation) -> None:
    (here.home / ".codex").mkdir()
    names = json.dumps(["HTTPS_PROXY", "NO_PROXY"])
    (here.home / ".codex" / "config.toml").write_text(f"[mcp_servers.pi-session-mcp]\nenv_vars = {names}\n")


@scene(network.VARIABLE_NOT_PASSED_ON, network.PROXY_SETTING, _name_the_proxy_in_pis_settings, only_on="linux")
@scene(network.VARIABLE_NOT_PASSED_ON, network.PROXY_SETTING, _name_the_variable_for_codex, only_on="linux")
def _proxy_that_codex_does_not_pass_on(here: Installation) -> None:
    _write_records(here, "owned")
    here.environ["HTTPS_PROXY"] = "http://127.0.0.1:9"


@scene(network.VARIABLE_NOT_PASSED_ON, network.PASS_VARIABLE, _name_the_variable_for_codex, only_on="linux")
def _exceptions_that_codex_does_not_pass_on(here: Installation) -> None:
    _write_records(here, "owned")
    here.environ["NO_PROXY"] = "localhost"


def _name_the_file_instead(here: Installation) -> None:
    here.environ["NODE_EXTRA_CA_CERTS"] = here.environ.pop("NODE_USE_SYSTEM_CA")


@scene(network.VARIABLE_NOT_PASSED_ON, network.EXTRA_CERTIFICATES, _name_the_file_instead, only_on="linux")
def _certificates_that_codex_does_not_pass_on(here: Installation) -> None:
    _write_records(here, "owned")
    here.environ["NODE_USE_SYSTEM_CA"] = "1"


def _link_to_one_inside(here: Installation) -> None:
    (here.workspace / "docs").mkdir()
    (here.workspace / "docs" / "agents.md").write_text("inside")
    (here.workspace / "AGENTS.md").unlink()
    (here.workspace / "AGENTS.md").symlink_to("docs/agents.md")


@scene(
    workspaces.WORKSPACE_INSTRUCTIONS_LEFT_OUT, workspaces.WORKSPACE_INSTRUCTIONS_LEFT_OUT.remedy, _link_to_one_inside
)
def _instructions_that_lead_outside(here: Installation) -> None:
    here.use_a_real_node()
    (here.workspace / "AGENTS.md").symlink_to(here.config)


@scene(runtime.PI_RUNTIME_BROKEN, runtime.PI_RUNTIME_BROKEN.remedy, _say_that_all_is_well)
def _sdk_that_cannot_be_loaded(here: Installation) -> None:
    here.say('{"faults": [], "proxies": true, "configured": false}\n')


@scene(runtime.PI_RUNTIME_BROKEN, runtime.PI_RUNTIME_BROKEN.remedy, _say_that_all_is_well)
def _sdk_without_what_is_used(here: Installation) -> None:
    here.say(answers(WELL, missing=["ModelRuntime"]))


def _permit_the_agent_directory(here: Installation) -> None:
    here.agent_directory.chmod(0o700)


@scene(
    agent_directory.PI_AGENT_DIRECTORY_NOT_WRITABLE,
    agent_directory.PI_AGENT_DIRECTORY_NOT_WRITABLE.remedy,
    _permit_the_agent_directory,
)
def _read_only_agent_directory(here: Installation) -> None:
    here.agent_directory.chmod(0o555)


def _remove_the_lock(here: Installation) -> None:
    lock = here.agent_directory / "auth.json.lock"
    lock.rmdir() if lock.is_dir() else lock.unlink()


@scene(agent_directory.PI_LOCK_PRESENT, agent_directory.PI_LOCK_PRESENT.remedy, _remove_the_lock)
def _lock_that_was_left_behind(here: Installation) -> None:
    (here.agent_directory / "auth.json.lock").mkdir()


@scene(agent_directory.PI_LOCK_PRESENT, agent_directory.PI_LOCK_PRESENT.remedy, _remove_the_lock)
def _lock_that_is_a_file(here: Installation) -> None:
    (here.agent_directory / "auth.json.lock").write_text("")


def _say(here: Installation, judgement: dict[str, Any]) -> None:
    """Of profiles that no extension can mend."""
    profile = {"default": True, "permissionProfile": "read-only", "provider": "p", "model": "m", "thinkingLevel": "off"}
    here.configure(executionProfiles={"reader": profile})
    here.say(answers(judgement))


@scene(profiles.PROFILE_PROVIDER_UNKNOWN, profiles.PROFILE_PROVIDER_UNKNOWN.remedy, _say_that_all_is_well)
def _unknown_provider(here: Installation) -> None:
    _say(here, judged({"provider": False}))


@scene(profiles.PROFILE_MODEL_UNKNOWN, profiles.PROFILE_MODEL_UNKNOWN.remedy, _say_that_all_is_well)
def _unknown_model(here: Installation) -> None:
    _say(here, judged({"provider": True, "model": False}))


@scene(profiles.PROFILE_AUTHENTICATION_MISSING, profiles.PROFILE_AUTHENTICATION_MISSING.remedy, _say_that_all_is_well)
def _no_login(here: Installation) -> None:
    _say(here, judged({"provider": True, "model": True, "check_auth": False}))


@scene(
    profiles.PROFILE_AUTHENTICATION_UNAVAILABLE,
    profiles.PROFILE_AUTHENTICATION_UNAVAILABLE.remedy,
    _say_that_all_is_well,
)
def _key_that_cannot_be_had(here: Installation) -> None:
    _say(here, judged({"provider": True, "model": True, "check_auth": True, "get_auth": None}))


@scene(profiles.PROFILE_MODEL_UNAVAILABLE, profiles.PROFILE_MODEL_UNAVAILABLE.remedy, _say_that_all_is_well)
def _model_of_another_plan(here: Installation) -> None:
    _say(here, judged({**YES, "availability": False}))


@scene(
    profiles.PROFILE_THINKING_LEVEL_UNAVAILABLE,
    profiles.PROFILE_THINKING_LEVEL_UNAVAILABLE.remedy,
    _say_that_all_is_well,
)
def _level_that_would_be_another(here: Installation) -> None:
    _say(here, judged(YES, level="low"))


def _set_the_variable(here: Installation) -> None:
    here.environ["PI_SESSION_MCP_CONFIG"] = str(here.config)


@scene(configuration.CONFIG_MISSING, configuration.NAME_CONFIGURATION, _set_the_variable)
def _variable_unset(here: Installation) -> None:
    del here.environ["PI_SESSION_MCP_CONFIG"]


@scene(configuration.CONFIG_MISSING, configuration.NAME_CONFIGURATION, _set_the_variable)
def _variable_empty(here: Installation) -> None:
    here.environ["PI_SESSION_MCP_CONFIG"] = ""


def _write_the_file(here: Installation) -> None:
    here.configure()


@scene(configuration.CONFIG_MISSING, configuration.WRITE_CONFIGURATION, _set_the_variable)
def _variable_wrong(here: Installation) -> None:
    here.environ["PI_SESSION_MCP_CONFIG"] = "nowhere.json"


@scene(configuration.CONFIG_MISSING, configuration.WRITE_CONFIGURATION, _write_the_file)
def _file_absent(here: Installation) -> None:
    here.config.unlink()


def _readable_file(here: Installation) -> None:
    if here.config.is_dir():
        here.config.rmdir()
    elif here.config.is_file():
        here.config.chmod(0o600)
    else:
        here.config.unlink()
    here.configure()


@scene(configuration.CONFIG_UNREADABLE, configuration.CONFIG_UNREADABLE.remedy, _readable_file)
def _file_without_permission(here: Installation) -> None:
    here.config.chmod(0)


@scene(configuration.CONFIG_UNREADABLE, configuration.CONFIG_UNREADABLE.remedy, _readable_file)
def _directory_for_a_file(here: Installation) -> None:
    here.config.unlink()
    here.config.mkdir()


@scene(configuration.CONFIG_UNREADABLE, configuration.CONFIG_UNREADABLE.remedy, _readable_file)
def _fifo_for_a_file(here: Installation) -> None:
    here.config.unlink()
    os.mkfifo(here.config)


@scene(configuration.CONFIG_INVALID, configuration.CONFIG_INVALID.remedy, _write_the_file)
def _unknown_field(here: Installation) -> None:
    here.configure(CANARY=1)


@scene(configuration.CONFIG_INVALID, configuration.CONFIG_INVALID.remedy, _write_the_file)
def _two_mebibytes(here: Installation) -> None:
    here.config.write_text(" " * 2 * 1024 * 1024)


@scene(configuration.CONFIG_INVALID, configuration.CONFIG_INVALID.remedy, _write_the_file)
def _nested_brackets(here: Installation) -> None:
    here.config.write_text("[" * 500_000)


@scene(configuration.CONFIG_INVALID, configuration.CONFIG_INVALID.remedy, _write_the_file)
def _comment(here: Installation) -> None:
    here.config.write_text(json.dumps(here.said) + "\n// off")


def _make_the_workspace(here: Installation) -> None:
    here.workspace.unlink(missing_ok=True)
    here.workspace.mkdir()


def _correct_the_path(here: Installation) -> None:
    (here.root / "elsewhere with space").mkdir()
    here.configure(workspaces={"main": "../elsewhere with space"})


@scene(workspaces.WORKSPACE_MISSING, workspaces.WORKSPACE_MISSING.remedy, _make_the_workspace)
@scene(workspaces.WORKSPACE_MISSING, workspaces.WORKSPACE_MISSING.remedy, _correct_the_path)
def _workspace_removed(here: Installation) -> None:
    here.workspace.rmdir()


@scene(workspaces.WORKSPACE_MISSING, workspaces.WORKSPACE_MISSING.remedy, _make_the_workspace)
def _workspace_is_a_dangling_link(here: Installation) -> None:
    here.workspace.rmdir()
    here.workspace.symlink_to("nowhere")


@scene(workspaces.WORKSPACE_MISSING, workspaces.WORKSPACE_MISSING.remedy, _make_the_workspace)
def _workspace_is_a_circle_of_links(here: Installation) -> None:
    here.workspace.rmdir()
    here.workspace.symlink_to(here.workspace)


@scene(workspaces.WORKSPACE_NOT_DIRECTORY, workspaces.WORKSPACE_NOT_DIRECTORY.remedy, _correct_the_path)
def _workspace_is_a_file(here: Installation) -> None:
    here.workspace.rmdir()
    here.workspace.write_text("")


@scene(workspaces.WORKSPACE_NOT_DIRECTORY, workspaces.WORKSPACE_NOT_DIRECTORY.remedy, _correct_the_path)
def _workspace_is_a_fifo(here: Installation) -> None:
    here.workspace.rmdir()
    os.mkfifo(here.workspace)


def _permit(here: Installation) -> None:
    here.workspace.chmod(0o700)


@scene(
    workspaces.WORKSPACE_PATH_NOT_UTF8, workspaces.WORKSPACE_PATH_NOT_UTF8.remedy, _correct_the_path, only_on="linux"
)
def _workspace_with_a_name_that_is_not_utf8(here: Installation) -> None:
    odd = here.root / os.fsdecode(b"odd-\xff")
    (odd / "code").mkdir(parents=True)
    here.workspace.rmdir()
    here.workspace.symlink_to(odd / "code")


@scene(workspaces.WORKSPACE_UNREADABLE, workspaces.WORKSPACE_UNREADABLE.remedy, _permit)
def _workspace_without_permission(here: Installation) -> None:
    here.workspace.chmod(0)


@scene(workspaces.WORKSPACE_UNREADABLE, workspaces.WORKSPACE_UNREADABLE.remedy, _permit)
def _workspace_not_searchable(here: Installation) -> None:
    here.workspace.chmod(0o600)


def _permit_above(here: Installation) -> None:
    here.workspace.chmod(0o700)


@scene(workspaces.WORKSPACE_UNREADABLE, workspaces.WORKSPACE_UNREADABLE.remedy, _permit_above)
def _closed_directory_in_the_middle(here: Installation) -> None:
    (here.workspace / "inner").mkdir()
    here.configure(workspaces={"main": str(here.workspace / "inner")})
    here.workspace.chmod(0)


def _no_coding_profile(here: Installation) -> None:
    here.configure(executionProfiles={"reader": here.said["executionProfiles"]["reader"]})


@scene(workspaces.WORKSPACE_NOT_WRITABLE, workspaces.WORKSPACE_NOT_WRITABLE.remedy, _permit)
@scene(workspaces.WORKSPACE_NOT_WRITABLE, workspaces.WORKSPACE_NOT_WRITABLE.remedy, _no_coding_profile)
def _workspace_read_only(here: Installation) -> None:
    here.workspace.chmod(0o555)


def _move_the_configuration(here: Installation) -> None:
    here.config = here.root / "etc" / "config.json"
    _set_the_variable(here)
    here.configure()


@scene(workspaces.WORKSPACE_CONTAINS_POLICY, workspaces.OUTSIDE["configuration"], _move_the_configuration)
def _configuration_in_the_workspace(here: Installation) -> None:
    here.config = here.workspace / "config.json"
    _set_the_variable(here)
    here.configure()


@scene(workspaces.WORKSPACE_CONTAINS_POLICY, workspaces.OUTSIDE["configuration"], _correct_the_path)
def _workspace_is_a_link_to_the_configuration(here: Installation) -> None:
    here.workspace.rmdir()
    here.workspace.symlink_to(here.config.parent)


def _agent_directory_elsewhere(here: Installation) -> None:
    here.configure(piAgentDirectory=str(here.agent_directory))


@scene(workspaces.WORKSPACE_CONTAINS_POLICY, workspaces.OUTSIDE["agent_directory"], _agent_directory_elsewhere)
def _agent_directory_in_the_workspace(here: Installation) -> None:
    # Without pins, which count as broken when their packages lie in a workspace.
    for profile in here.said["executionProfiles"].values():
        profile.pop("extensions")
    here.configure(piAgentDirectory=str(here.workspace / "agent"))


@scene(workspaces.WORKSPACE_CONTAINS_POLICY, workspaces.OUTSIDE["runtime"], _correct_the_path)
def _runtime_in_the_workspace(here: Installation) -> None:
    here.configure(workspaces={"main": str(here.prefix)})


@scene(workspaces.WORKSPACE_CONTAINS_POLICY, workspaces.OUTSIDE["runtime"], _remove_runtime_section)
def _configured_node_in_the_workspace(here: Installation) -> None:
    here.configure(runtime={"node": str(here.node_program(here.workspace / "node"))})


def _usual_state_directory(here: Installation) -> None:
    here.environ.pop("XDG_STATE_HOME", None)


@scene(workspaces.WORKSPACE_CONTAINS_POLICY, workspaces.OUTSIDE["state"], _usual_state_directory, only_on="linux")
def _state_in_the_workspace(here: Installation) -> None:
    here.environ["XDG_STATE_HOME"] = str(here.workspace / "state")


def _ripgrep_on_path(here: Installation) -> None:
    program(here.root / "bin" / "rg")


def _ripgrep_with_the_runtime(here: Installation) -> None:
    here.record_runtime_again()


@scene(runtime.SEARCH_TOOLS_MISSING, runtime.SEARCH_TOOLS_MISSING.remedy, _ripgrep_on_path)
@scene(runtime.SEARCH_TOOLS_MISSING, runtime.SEARCH_TOOLS_MISSING.remedy, _ripgrep_with_the_runtime)
def _no_ripgrep(here: Installation) -> None:
    shutil.rmtree(here.prefix / "share")
    # Programs that others could write are passed over, and so is `/tmp` itself: nothing else is on this PATH.
    here.environ["PATH"] = str(here.root / "bin")
    here.configure(runtime={"node": str(here.node), "sdk": str(sdk(here.root / "opt" / "sdk"))})


def _unset_tmpdir(here: Installation) -> None:
    for name in ("TMPDIR", "TMP", "TEMP"):
        here.environ.pop(name, None)


def _name_another_tmpdir(here: Installation) -> None:
    here.environ["TMPDIR"] = str(here.cwd)


@scene(system.TEMPORARY_DIRECTORY_UNUSABLE, system.TEMPORARY_DIRECTORY_UNUSABLE.remedy, _unset_tmpdir)
@scene(system.TEMPORARY_DIRECTORY_UNUSABLE, system.TEMPORARY_DIRECTORY_UNUSABLE.remedy, _name_another_tmpdir)
def _tmpdir_that_is_not_there(here: Installation) -> None:
    here.environ["TMPDIR"] = str(here.root / "nowhere")


@scene(system.TEMPORARY_DIRECTORY_UNUSABLE, system.TEMPORARY_DIRECTORY_UNUSABLE.remedy, _unset_tmpdir)
def _temp_that_is_a_file(here: Installation) -> None:
    here.environ["TEMP"] = str(here.config)


@scene(system.TEMPORARY_DIRECTORY_UNUSABLE, system.TEMPORARY_DIRECTORY_UNUSABLE.remedy, _name_another_tmpdir)
def _tmpdir_that_is_relative(here: Installation) -> None:
    here.environ["TMPDIR"] = "tmp"


@scene(system.TEMPORARY_DIRECTORY_UNUSABLE, system.TEMPORARY_DIRECTORY_UNUSABLE.remedy, _name_another_tmpdir)
def _tmpdir_that_cannot_be_written(here: Installation) -> None:
    (here.root / "closed").mkdir(mode=0o555)
    here.environ["TMPDIR"] = str(here.root / "closed")


def _set_home(here: Installation) -> None:
    here.environ["HOME"] = str(here.home)


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["no_home"], _set_home)
def _no_home(here: Installation) -> None:
    here.configure(piAgentDirectory=str(here.agent_directory))
    del here.environ["HOME"]


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["no_home"], _set_home)
def _empty_home(here: Installation) -> None:
    here.configure(piAgentDirectory=str(here.agent_directory))
    here.environ["HOME"] = ""


@scene(
    setup_state.STATE_DIRECTORY_UNSUPPORTED,
    setup_state.REMEDIES["file_system"],
    _usual_state_directory,
    only_on="linux",
)
def _state_on_a_file_system_without_sure_locks(here: Installation) -> None:
    here.environ["XDG_STATE_HOME"] = "/proc"


def _state(here: Installation) -> Path:
    """Setup's directory on Linux, as setup leaves it."""
    path = here.home / ".local" / "state" / "pi-session-mcp" / "setup"
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    path.parent.chmod(0o700)
    return path


def _state_of_our_own(here: Installation) -> None:
    here.home.chmod(0o755)
    path = here.home / ".local" / "state" / "pi-session-mcp"
    if path.is_symlink():
        path.unlink()
    _state(here)


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["permissions"], _state_of_our_own, only_on="linux")
def _state_that_others_can_read(here: Installation) -> None:
    _state(here).chmod(0o750)


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["permissions"], _state_of_our_own, only_on="linux")
def _state_below_one_that_others_can_write(here: Installation) -> None:
    _state(here).parent.chmod(0o770)


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["permissions"], _state_of_our_own, only_on="linux")
def _state_that_is_a_link(here: Installation) -> None:
    path = here.home / ".local" / "state" / "pi-session-mcp"
    path.parent.mkdir(parents=True)
    path.symlink_to(here.root)


@scene(
    setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["not_writable"], _state_of_our_own, only_on="linux"
)
def _read_only_home(here: Installation) -> None:
    here.home.chmod(0o555)


def _empty_the_directory_to_look_from(here: Installation) -> None:
    (_state(here) / "inspect" / "x").unlink()


@scene(
    setup_state.STATE_DIRECTORY_UNSUPPORTED,
    setup_state.REMEDIES["inspect"],
    _empty_the_directory_to_look_from,
    only_on="linux",
)
def _something_in_the_directory_to_look_from(here: Installation) -> None:
    (_state(here) / "inspect").mkdir(mode=0o700)
    (_state(here) / "inspect" / "x").touch()


def _clear_the_root(here: Installation) -> None:
    for mark in here.machine_root.iterdir():
        mark.unlink()


def _project_at_home_and_a_mark_in_the_root(here: Installation, mark: str) -> None:
    (_state(here) / "inspect").mkdir(mode=0o700)
    (here.home / ".mcp.json").touch()
    (here.machine_root / mark).touch()


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES[".mcp.json"], _clear_the_root, only_on="linux")
def _registrations_in_the_root(here: Installation) -> None:
    _project_at_home_and_a_mark_in_the_root(here, ".mcp.json")


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES[".git"], _clear_the_root, only_on="linux")
def _repository_in_the_root(here: Installation) -> None:
    _project_at_home_and_a_mark_in_the_root(here, ".git")


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES[".codex"], _clear_the_root, only_on="linux")
def _project_of_codex_in_the_root(here: Installation) -> None:
    _project_at_home_and_a_mark_in_the_root(here, ".codex")


def _write_records(here: Installation, *phases: str) -> None:
    record = {"target": "codex:user:pi-session-mcp", "registration": "0" * 64, "release": "0" * 64, "previous": None}
    records = [
        {**record, "place": f"{place:064}", "phase": phase, "transactionId": "0" * 32}
        for place, phase in enumerate(phases)
    ]
    path = _state(here) / "ownership.json"
    path.write_text(json.dumps({"schemaVersion": 1, "records": records}))
    path.chmod(0o600)


def _remove_the_records(here: Installation) -> None:
    (_state(here) / "ownership.json").unlink()


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["records"], _remove_the_records, only_on="linux")
def _records_damaged(here: Installation) -> None:
    _write_records(here)
    (_state(here) / "ownership.json").write_text("{")


@scene(setup_state.STATE_DIRECTORY_UNSUPPORTED, setup_state.REMEDIES["records"], _remove_the_records, only_on="linux")
def _records_that_others_can_read(here: Installation) -> None:
    _write_records(here, "owned")
    (_state(here) / "ownership.json").chmod(0o644)


def _finish(here: Installation) -> None:
    _write_records(here, "owned", "owned")


def _undo(here: Installation) -> None:
    _write_records(here, "owned")


@scene(setup_state.SETUP_PENDING, setup_state.SETUP_PENDING.remedy, _finish, only_on="linux")
@scene(setup_state.SETUP_PENDING, setup_state.SETUP_PENDING.remedy, _undo, only_on="linux")
def _transaction_broken_off(here: Installation) -> None:
    _write_records(here, "owned", "pending")


def _install_the_pin(here: Installation) -> None:
    shutil.rmtree(here.extension, ignore_errors=True)
    install_package(here.agent_directory)


@scene(extensions.EXTENSION_MISSING, extensions.INSTALL_EXTENSION, _install_the_pin)
def _extension_removed(here: Installation) -> None:
    shutil.rmtree(here.extension)


def _pin_what_is_installed(here: Installation) -> None:
    profiles = here.said["executionProfiles"]
    here.configure(executionProfiles={name: {**one, "extensions": ["npm:ext@2.0.0"]} for name, one in profiles.items()})


def _pin_what_is_installed_whole(here: Installation) -> None:
    install_package(here.agent_directory, version="2.0.0")
    _pin_what_is_installed(here)


@scene(extensions.EXTENSION_VERSION_MISMATCH, extensions.EXTENSION_VERSION_MISMATCH.remedy, _install_the_pin)
@scene(extensions.EXTENSION_VERSION_MISMATCH, extensions.EXTENSION_VERSION_MISMATCH.remedy, _pin_what_is_installed)
def _extension_updated(here: Installation) -> None:
    install_package(here.agent_directory, version="2.0.0")


@scene(extensions.EXTENSION_BROKEN, extensions.EXTENSION_BROKEN.remedy, _install_the_pin)
def _extension_entry_missing(here: Installation) -> None:
    (here.extension / "index.ts").unlink()


@scene(extensions.EXTENSION_BROKEN, extensions.EXTENSION_BROKEN.remedy, _install_the_pin)
def _extension_manifest_damaged(here: Installation) -> None:
    (here.extension / "package.json").write_text("{")


def _agent_directory_in_no_workspace(here: Installation) -> None:
    (here.workspace / "ext").rename(here.root / "ext")
    here.extension.unlink()
    here.extension.symlink_to(here.root / "ext")


@scene(extensions.EXTENSION_IN_WORKSPACE, extensions.EXTENSION_IN_WORKSPACE.remedy, _agent_directory_in_no_workspace)
def _extension_linked_into_the_workspace(here: Installation) -> None:
    here.extension.rename(here.workspace / "ext")
    here.extension.symlink_to(here.workspace / "ext")


def _take_the_pin_out(here: Installation) -> None:
    profiles = here.said["executionProfiles"]
    here.configure(executionProfiles={name: {**one, "extensions": []} for name, one in profiles.items()})


@scene(extensions.EXTENSION_FORM_UNSUPPORTED, extensions.EXTENSION_FORM_UNSUPPORTED.remedy, _take_the_pin_out)
@scene(
    extensions.EXTENSION_FORM_UNSUPPORTED, extensions.EXTENSION_FORM_UNSUPPORTED.remedy, _pin_what_is_installed_whole
)
def _extension_with_braces(here: Installation) -> None:
    install_package(here.agent_directory, entries=["./{index,other}*.ts"])


@scene(extensions.PACKAGE_WITHOUT_EXTENSION, extensions.PACKAGE_WITHOUT_EXTENSION.remedy, _take_the_pin_out)
def _package_of_skills(here: Installation) -> None:
    install_package(here.agent_directory, pi={"skills": ["./skills"]})


@scene(extensions.EXTENSION_DEPENDENCY_MISSING, extensions.EXTENSION_DEPENDENCY_MISSING.remedy, _install_the_pin)
def _dependency_missing(here: Installation) -> None:
    install_package(here.agent_directory, dependencies={"gone": "^1.0.0"})


@scene(extensions.EXTENSION_DEPENDENCY_OUTSIDE, extensions.EXTENSION_DEPENDENCY_OUTSIDE.remedy, _install_the_pin)
def _dependency_linked_in_from_elsewhere(here: Installation) -> None:
    directory = install_package(here.agent_directory, dependencies={"linked": "^1.0.0"})
    install_package(here.root, "linked")
    (directory / "node_modules").mkdir()
    (directory / "node_modules" / "linked").symlink_to(here.root / "npm" / "node_modules" / "linked")
