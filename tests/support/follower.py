"""Somebody who does what the program says, word for word, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from pi_session_mcp.doctor.subjects import (
    agent_directory,
    configuration,
    extensions,
    network,
    node,
    profiles,
    runtime,
    setup_state,
    system,
    workspaces,
)
from tests.support.extensions import install_package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.support.warm_program import Said, WarmProgram

VARIABLE: Final = "PI_SESSION_MCP_CONFIG"
MAX_ROUNDS: Final = 8
_COMMAND: Final = re.compile(r"`((?:env -u [A-Z_]+ )?pi-session-mcp [^`]+)`")
_NEXT: Final = re.compile(r"Next: (pi-session-mcp [^\n]*)")
_WITH_TARGET: Final = "with this target"


def commands_in(sentence: str) -> list[str]:
    """The commands of ours that a sentence names in code spans."""
    return _COMMAND.findall(sentence)


@dataclass
class Follower:
    """A person in a home with one project and a provider in Pi's files. `done` is what was done, in order."""

    warm: WarmProgram
    home: Path
    environ: dict[str, str]
    done: list[str] = field(default_factory=list)

    @property
    def project(self) -> Path:
        """The directory that sessions are to work in."""
        return self.home / "code" / "app"

    @property
    def agent_directory(self) -> Path:
        """Pi's."""
        return self.home / ".pi" / "agent"

    @property
    def configuration(self) -> Path:
        """Where this person's configuration is."""
        named = self.environ.get(VARIABLE)
        return self.home / named if named else self.home / ".config" / "pi-session-mcp" / "config.json"

    @property
    def state(self) -> Path:
        """Setup's directory."""
        named = self.environ.get("XDG_STATE_HOME")
        return (self.home / ".local" / "state" if named is None else self.home / named) / "pi-session-mcp" / "setup"

    def good(self) -> dict[str, Any]:
        """A configuration without a mistake."""
        profile = {"permissionProfile": "read-only", "provider": "scripted", "model": "plain", "thinkingLevel": "off"}
        return {"workspaces": {"app": str(self.project)}, "executionProfiles": {"reader": {"default": True, **profile}}}

    def write(self, **sections: Any) -> None:
        """The good configuration, with these sections instead."""
        if self.configuration.is_dir():
            self.configuration.rmdir()
        self.configuration.parent.mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(json.dumps({**self.good(), **sections}))
        self.configuration.chmod(0o600)

    def with_extension(self, pin: str) -> dict[str, Any]:
        """The profiles of a configuration that pins it."""
        return {"reader": {**self.good()["executionProfiles"]["reader"], "extensions": [pin]}}

    def run(self, command: str) -> Said:
        """Type a command."""
        words, environ = command.split(), dict(self.environ)
        if words[0] == "env":
            environ.pop(words[2], None)
            words = words[3:]
        return self.warm.run(words[1:], environ, self.home, weak=True)

    def follow(self) -> None:
        """Do what the doctor says until it finds nothing. Fails when that does not end."""
        for _ in range(MAX_ROUNDS):
            report = json.loads(self.run("pi-session-mcp doctor --json").out)
            found = [check for check in report["checks"] if check["severity"] != "ok"]
            if not found:
                assert report["exitCode"] == 0
                return
            self._mend(self._first(found))
        pytest.fail(f"still wrong after {self.done}: {found}")

    def _first(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        """The finding that the last line is about: whoever reads from the end begins there."""
        errors = [check for check in found if check["severity"] == "error"] or found
        if len(errors) == 1:  # whatever the last line says, it is about this one
            return errors[0]
        said = self.run("pi-session-mcp doctor").out
        named = _NEXT.search(" ".join(said.split()))
        assert named is not None
        command = " ".join(word for word in named[1].split() if ":" not in word)
        return next((check for check in errors if f"`{command}`" in check["remediation"]), errors[0])

    def _mend(self, check: Mapping[str, Any]) -> None:
        remedy = check["remediation"]
        act, commands = ACTS.get(remedy), commands_in(remedy)
        assert act or commands, f"nobody knows how to follow: {remedy}"
        if act is not None:
            self.done.append(remedy)
            act(self)
        if commands:
            target = f" {check['subject']}" if _WITH_TARGET in remedy else ""
            self._type(commands[0] + target)

    def _type(self, command: str, *, depth: int = 0) -> None:
        """A command, with what it asks for, and what it says is to be done before it."""
        assert depth < MAX_ROUNDS, self.done
        self.done.append(command)
        said = json.loads(self.run(f"{command} --json").out)
        if said["ok"]:
            return
        more = self._answer(said)
        if more is not None:
            self._type(f"{command} {more}", depth=depth + 1)
            return
        before = commands_in(said.get("remediation") or "")
        assert before, f"{command} leads nowhere: {said}"
        self._type(before[0], depth=depth + 1)
        self._type(command, depth=depth + 1)

    def _answer(self, said: Mapping[str, Any]) -> str | None:
        """The option that a refusal asks for, with the first name that it lists."""
        kind = re.fullmatch(r"(workspace|provider|model)_required", str(said.get("code")))
        if kind is None:
            return None
        named = {"workspace": "app=code/app"}.get(kind[1]) or said["valid"][f"{kind[1]}s"][0]
        return f"--{kind[1]} {named}"


def _correct_configuration(person: Follower) -> None:
    person.write()


def _make_project(person: Follower) -> None:
    person.project.mkdir(parents=True, exist_ok=True)


def _permit_project(person: Follower) -> None:
    person.project.chmod(0o700)


def _drop_variable(name: str) -> Callable[[Follower], None]:
    return lambda person: person.environ.__delitem__(name)


def _without_runtime_section(person: Follower) -> None:
    said = json.loads(person.configuration.read_text())
    said.pop("runtime")
    person.configuration.write_text(json.dumps(said))


def _mend_pi_files(person: Follower) -> None:
    write_pi_files(person.agent_directory)


def _permit_agent_directory(person: Follower) -> None:
    person.agent_directory.chmod(0o700)


def _remove_lock(person: Follower) -> None:
    (person.agent_directory / "auth.json.lock").rmdir()


def _log_in(person: Follower) -> None:
    """What Pi's /login leaves for a provider that takes a key."""
    person.agent_directory.mkdir(parents=True, exist_ok=True)
    profiles = json.loads(person.configuration.read_text())["executionProfiles"].values()
    stored = {profile["provider"]: {"type": "api_key", "key": "no-key"} for profile in profiles}
    (person.agent_directory / "auth.json").write_text(json.dumps(stored))


def _install_extension(person: Follower) -> None:
    shutil.rmtree(person.agent_directory / "npm" / "node_modules" / "ext", ignore_errors=True)
    install_package(person.agent_directory)


def _private_state(person: Follower) -> None:
    for path in (person.state, person.state.parent):
        if path.is_symlink() or path.is_file():
            path.unlink()
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)


def _usual_state(person: Follower) -> None:
    person.environ.pop("XDG_STATE_HOME")


def _remove_records(person: Follower) -> None:
    (person.state / "ownership.json").unlink()


def _empty_inspect(person: Follower) -> None:
    for path in (person.state / "inspect").iterdir():
        path.unlink()


ACTS: Final[Mapping[str, Callable[[Follower], None]]] = {
    configuration.CONFIG_INVALID.remedy: _correct_configuration,
    configuration.CONFIG_UNREADABLE.remedy: _correct_configuration,
    workspaces.WORKSPACE_MISSING.remedy: _make_project,
    workspaces.WORKSPACE_NOT_DIRECTORY.remedy: _correct_configuration,
    workspaces.WORKSPACE_UNREADABLE.remedy: _permit_project,
    workspaces.WORKSPACE_NOT_WRITABLE.remedy: _permit_project,
    workspaces.WORKSPACE_PATH_NOT_UTF8.remedy: _correct_configuration,
    workspaces.OUTSIDE["configuration"]: _correct_configuration,
    workspaces.OUTSIDE["agent_directory"]: _correct_configuration,
    node.CONFIGURED_NODE: _without_runtime_section,
    runtime.CONFIGURED_SDK: _without_runtime_section,
    agent_directory.FILE_REMEDIES["unreadable"]: _mend_pi_files,
    agent_directory.FILE_REMEDIES["not_json"]: _mend_pi_files,
    agent_directory.FILE_REMEDIES["refused"]: _mend_pi_files,
    agent_directory.PI_AGENT_DIRECTORY_NOT_WRITABLE.remedy: _permit_agent_directory,
    agent_directory.PI_LOCK_PRESENT.remedy: _remove_lock,
    network.PROXY_INVALID.remedy: _drop_variable("http_proxy"),
    profiles.PROFILE_PROVIDER_UNKNOWN.remedy: _correct_configuration,
    profiles.PROFILE_MODEL_UNKNOWN.remedy: _correct_configuration,
    profiles.PROFILE_AUTHENTICATION_MISSING.remedy: _log_in,
    profiles.PROFILE_AUTHENTICATION_UNAVAILABLE.remedy: _log_in,
    profiles.PROFILE_MODEL_UNAVAILABLE.remedy: _correct_configuration,
    profiles.PROFILE_THINKING_LEVEL_UNAVAILABLE.remedy: _correct_configuration,
    system.TEMPORARY_DIRECTORY_UNUSABLE.remedy: _drop_variable("TMPDIR"),
    agent_directory.VARIABLE_REMEDIES["not_absolute"]: _drop_variable("PI_CODING_AGENT_DIR"),
    agent_directory.VARIABLE_REMEDIES["in_project"]: _drop_variable("PI_CODING_AGENT_DIR"),
    setup_state.REMEDIES["file_system"]: _usual_state,
    setup_state.REMEDIES["permissions"]: _private_state,
    setup_state.REMEDIES["not_writable"]: _usual_state,
    setup_state.REMEDIES["inspect"]: _empty_inspect,
    setup_state.REMEDIES["records"]: _remove_records,
    extensions.INSTALL_EXTENSION: _install_extension,
    extensions.EXTENSION_VERSION_MISMATCH.remedy: _install_extension,
    extensions.EXTENSION_BROKEN.remedy: _install_extension,
}
"""What a person does about a sentence that asks for more than a command."""


def write_pi_files(agent_directory: Path) -> None:
    """A provider of the operator's own, as Pi's files describe it."""
    agent_directory.mkdir(parents=True, exist_ok=True)
    provider = {
        "baseUrl": "http://127.0.0.1:9/v1",
        "api": "openai-completions",
        "apiKey": "no-key",
        "models": [{"id": "plain"}],
    }
    (agent_directory / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
    (agent_directory / "auth.json").write_text("{}")
    (agent_directory / "settings.json").unlink(missing_ok=True)
    for name in ("models.json", "auth.json"):
        os.chmod(agent_directory / name, 0o600)
