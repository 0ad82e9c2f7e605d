"""The real clients, from the npm registry at the versions whose answers are recorded."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from acceptance.errors import HarnessError
from acceptance.processes import run
from pi_session_mcp.runtime.toolchain import Toolchain, find_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_INSTALL_WITHIN_S: Final = 900
_VERSION_WITHIN_S: Final = 120


@dataclass(frozen=True, slots=True)
class Package:
    """A client as it is published. `programs` are patterns below `node_modules`, the first that is there is started."""

    word: str
    name: str
    version: str
    programs: tuple[str, ...]


PACKAGES: Final[Mapping[str, Package]] = {
    # Its own start script waits for an install script to put this program in its place; we run no install scripts.
    "claude-code": Package("claude", "@anthropic-ai/claude-code", "2.1.332", ("@anthropic-ai/claude-code-*/claude",)),
    "codex": Package("codex", "@openai/codex", "0.171.0", ("@openai/codex/bin/codex.js",)),
    "copilot": Package("copilot", "@github/copilot", "1.0.102", ("@github/copilot/npm-loader.js",)),
}


@dataclass(frozen=True, slots=True)
class Program:
    """A client that can be started as `word` from `directory`; `version` is what it calls itself."""

    client: str
    word: str
    directory: Path
    version: str


def install(clients: Sequence[str], cache: Path, say: Callable[[str], None]) -> list[Program]:
    """Have these clients below `cache`, each in a directory of its own. Raises `HarnessError`."""
    toolchain = find_toolchain(os.environ, ())
    if toolchain is None or toolchain.npm is None:
        raise HarnessError("there is no Node with npm: install the extra `node`")
    return [_installed(client, PACKAGES[client], cache, toolchain, say) for client in clients]


def given(clients: Sequence[str], directory: Path) -> list[Program]:
    """These clients as they are in `directory`, whatever they are. Raises `HarnessError`."""
    return [_asked(client, PACKAGES[client].word, directory) for client in clients]


def _installed(client: str, package: Package, cache: Path, toolchain: Toolchain, say: Callable[[str], None]) -> Program:
    directory = cache / "clients" / f"{client}-{package.version}"
    if not directory.exists():
        say(f"Installing {package.name} {package.version}")
        _install(package, directory, toolchain)
    _write_start(package, directory, toolchain.node)
    program = _asked(client, package.word, directory / "bin")
    if package.version not in program.version.split():
        raise HarnessError(f"{package.name} is not version {package.version}")
    return program


def _install(package: Package, directory: Path, toolchain: Toolchain) -> None:
    """Install beside the final place and rename, so that what is there is always whole."""
    assert toolchain.npm is not None
    directory.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=directory.parent))
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--include=optional", "--loglevel=error")
    words = (*toolchain.npm, "install", *options, "--prefix", str(unfinished), f"{package.name}@{package.version}")
    path = f"{toolchain.node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    try:
        done = run(words, unfinished, {**os.environ, "PATH": path}, within_s=_INSTALL_WITHIN_S)
        if done.status != 0:
            raise HarnessError(f"npm could not install {package.name}:\n{done.stderr}")
        unfinished.rename(directory)
    except OSError:
        if not directory.exists():  # else another run was quicker
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_start(package: Package, directory: Path, node: Path) -> None:
    modules = directory / "node_modules"
    found = next((path for pattern in package.programs for path in sorted(modules.glob(pattern))), None)
    if found is None:
        raise HarnessError(f"{package.name} has no program for this platform")
    words = [str(node), str(found)] if found.suffix == ".js" else [str(found)]
    start = directory / "bin" / package.word
    start.parent.mkdir(exist_ok=True)
    written = start.with_name(f".{package.word}-{secrets.token_hex(8)}")  # others may be starting it just now
    written.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    written.chmod(0o755)
    written.rename(start)


def _asked(client: str, word: str, directory: Path) -> Program:
    with tempfile.TemporaryDirectory(prefix="acceptance-version-") as home:
        environ = {"HOME": home, "TMPDIR": home, "PATH": f"{directory}{os.pathsep}/usr/bin:/bin"}
        done = run((str(directory / word), "--version"), Path(home), environ, within_s=_VERSION_WITHIN_S)
    if done.status != 0:
        raise HarnessError(f"{word} does not tell its version")
    first = done.stdout.splitlines()[0] if done.stdout else ""
    return Program(client, word, directory, first.rstrip("."))
