"""A throw-away home: everything that setup and a client need to work in it, and nothing that leads out of it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from acceptance.processes import MARK, end_all
from pi_session_mcp.demo.model import write_agent_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from acceptance.programs import Program
    from pi_session_mcp.runtime.locate import Runtime

CONFIGURATIONS: Final = ("plain", "full")
"""`plain`: the least, found by `HOME` alone. `full`: extensions, grants and limits, every variable set, also those that
change how clients word their errors, and a home that is a git repository itself."""

_MODEL: Final = {"provider": "scripted", "model": "scripted-1", "thinkingLevel": "off"}
_LOUD: Final = {"FORCE_COLOR": "1", "RUST_BACKTRACE": "1"}
EXTENSION: Final = ("acceptance-extension", "1.0.0")
# The clients' own switches for whatever they send besides their work. Codex's `mcp` commands send nothing.
_QUIET: Final = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "COPILOT_AUTO_UPDATE": "false",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}


@dataclass(frozen=True, slots=True)
class Home:
    """The home itself, a project in it, and the environment of whoever works there.

    `canary` is in every path of it and in every secret, so that nothing of it can be told without telling the canary.
    """

    directory: Path
    project: Path
    state: Path
    configuration: Path
    environ: Mapping[str, str]
    canary: str


@contextmanager
def home(name: str, program: Program, runtime: Runtime) -> Iterator[Home]:
    """A home with configuration `name`. When the block is left nothing runs in it and nothing is left of it."""
    canary = f"canary-{secrets.token_hex(8)}"
    # The name is known before the directory is there, so that a signal in between leaves nothing.
    directory = Path(os.path.realpath(tempfile.gettempdir()), f"acceptance-{canary}")
    try:
        directory.mkdir(mode=0o700)
        yield _furnished(directory, name, program, runtime, canary)
    finally:
        end_all(canary)
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def empty_home(program: Program, runtime: Runtime) -> Iterator[Home]:
    """A home with one project and nothing of ours or of Pi's; afterwards as with `home`."""
    canary = f"canary-{secrets.token_hex(8)}"
    directory = Path(os.path.realpath(tempfile.gettempdir()), f"acceptance-{canary}")
    try:
        directory.mkdir(mode=0o700)
        for name in ("project", "tmp", ".codex"):
            (directory / name).mkdir()
        (directory / "project" / "notes.txt").write_text("The code word is heron-41.\n", "utf-8")
        configuration = directory / ".config" / "pi-session-mcp" / "config.json"
        state = _state(directory) / "pi-session-mcp"
        yield Home(
            directory,
            directory / "project",
            state,
            configuration,
            _environ(directory, program, runtime, canary),
            canary,
        )
    finally:
        end_all(canary)
        shutil.rmtree(directory, ignore_errors=True)


def _environ(directory: Path, program: Program, runtime: Runtime, canary: str) -> dict[str, str]:
    return {
        "HOME": str(directory),
        "PATH": os.pathsep.join([str(program.directory), str(runtime.node.parent), "/usr/bin", "/bin"]),
        "TMPDIR": str(directory / "tmp"),
        "LANG": "C.UTF-8",
        MARK: canary,
        **_QUIET,
    }


def _state(directory: Path) -> Path:
    below = ("Library", "Application Support") if sys.platform == "darwin" else (".local", "state")
    return directory.joinpath(*below)


def _furnished(directory: Path, name: str, program: Program, runtime: Runtime, canary: str) -> Home:
    project, configuration = directory / "project", directory / "configuration.json"
    for path in (project, directory / "tmp", directory / ".codex", directory / "workspace"):
        path.mkdir()
    write_agent_directory(directory / "agent", "http://127.0.0.1:9/v1")
    said = _plain(directory, runtime) if name == "plain" else _full(directory, runtime)
    configuration.write_text(json.dumps(said, indent=2))
    environ = _environ(directory, program, runtime, canary) | {
        "PI_SESSION_MCP_CONFIG": str(configuration),
        "ACCEPTANCE_SECRET": f"secret-{canary}",
    }
    state = _state(directory)
    if name == "full":
        _keep_by_hand(directory)
        for top in (directory, project):
            _make_repository(top)
        environ |= _variables(directory)
        state = directory / "xdg" / "state"
    return Home(directory, project, state / "pi-session-mcp", configuration, environ, canary)


def _make_repository(top: Path) -> None:
    """As `git init` does it, as far as anybody looks."""
    for below in ("objects", "refs"):
        (top / ".git" / below).mkdir(parents=True)
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def _keep_by_hand(directory: Path) -> None:
    """A Codex file as people keep it: with comments, with other settings, and in truth somewhere else."""
    kept, link = directory / "dotfiles" / "codex.toml", directory / "clients" / "codex" / "config.toml"
    kept.parent.mkdir()
    link.parent.mkdir(parents=True, mode=0o700)
    kept.write_text('# by hand\nmodel = "some-model" # this one\n\n[tui] # looks\ntheme = "dark"\n')
    link.symlink_to(kept)


def _variables(directory: Path) -> dict[str, str]:
    named = {
        "CLAUDE_CONFIG_DIR": "clients/claude",
        "CODEX_HOME": "clients/codex",
        "COPILOT_HOME": "clients/copilot",
        **{f"XDG_{word}_HOME": f"xdg/{word.lower()}" for word in ("CONFIG", "DATA", "STATE", "CACHE")},
    }
    for below in named.values():
        (directory / below).mkdir(parents=True, mode=0o700, exist_ok=True)
    return {**{variable: str(directory / below) for variable, below in named.items()}, **_LOUD}


def _plain(directory: Path, runtime: Runtime) -> dict[str, object]:
    profile = {"default": True, "permissionProfile": "read-only", **_MODEL}
    return {
        "workspaces": {"work": str(directory / "workspace")},
        "piAgentDirectory": str(directory / "agent"),
        "executionProfiles": {"reader": profile},
        "runtime": {"node": str(runtime.node), "sdk": str(runtime.sdk_entry.parents[1])},
    }


def _full(directory: Path, runtime: Runtime) -> dict[str, object]:
    package, version = EXTENSION
    extension = directory / "agent" / "npm" / "node_modules" / package
    extension.mkdir(parents=True)
    manifest = {"name": package, "version": version, "pi": {"extensions": ["./index.ts"]}}
    (extension / "package.json").write_text(json.dumps(manifest))
    (extension / "index.ts").write_text("export default function () {}\n")
    grants = {
        "command": sys.executable,
        "args": ["-c", "pass"],
        "envFrom": {"TOKEN": "ACCEPTANCE_SECRET"},
        "tools": {"search": {"name": "search", "readOnly": True}},
    }
    plain = _plain(directory, runtime)
    extended = {
        "permissionProfile": "coding",
        "mcpServers": {"knowledge": grants},
        "extensions": [f"npm:{package}@{version}"],
        **_MODEL,
    }
    profiles = plain["executionProfiles"]
    assert isinstance(profiles, dict)
    return {**plain, "executionProfiles": {**profiles, "extended": extended}, "limits": {"maxSessions": 3}}
