"""The wheel and the sdist with each supported Python, and with the oldest and the newest Node; `-m release` runs it.

Pythons are looked for on `PATH` (`python3.11` and so on), Nodes come from the npm registry.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest

import pi_session_mcp
from pi_session_mcp.demo.model import write_agent_directory
from pi_session_mcp.runtime.toolchain import find_toolchain
from pi_session_mcp.runtime.versions import NODE_MINIMUM
from tests.packaging.releases import AWKWARD, REAL_HOME, Installed, Published, machine, pip, publish, run

if TYPE_CHECKING:
    from collections.abc import Callable

    Nodes = Callable[[str], Path]

pytestmark = [pytest.mark.release, pytest.mark.timeout(1200)]

WITHIN_S: Final = 900
OLDEST: Final = ".".join(map(str, NODE_MINIMUM))
NEWEST: Final = "latest"
MODEL: Final = {"provider": "scripted", "model": "scripted-1", "thinkingLevel": "off"}


@dataclass(frozen=True, slots=True)
class Case:
    """One way to have the program."""

    python: str
    node: str
    installer: Literal["pip", "pipx"]
    file: Literal["wheel", "sdist"]

    def __str__(self) -> str:
        return f"python{self.python}-node-{self.node}-{self.installer}-{self.file}"


CASES: Final = (
    Case("3.11", OLDEST, "pip", "wheel"),
    Case("3.12", OLDEST, "pip", "sdist"),
    Case("3.13", OLDEST, "pipx", "wheel"),
    Case("3.11", NEWEST, "pipx", "sdist"),
    Case("3.12", NEWEST, "pipx", "wheel"),
    Case("3.13", NEWEST, "pip", "wheel"),
)
"""Each Python with both Nodes, each Node with both installers, and each file with both installers."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A release."""
    return publish(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Nodes:
    """Makes a directory with `node` in a version, and an npm for it."""
    root = tmp_path_factory.mktemp("nodes")

    def fetch(version: str) -> Path:
        directory = root / version / "bin"
        if not directory.exists():
            _unpack_node(version, root / version)
            _link_npm(directory)
        return directory

    return fetch


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_release_installs_and_does_the_main_job(
    case: Case, published: Published, nodes: Nodes, tmp_path: Path
) -> None:
    root = tmp_path / AWKWARD
    python, node, file = _python(case.python), nodes(case.node), getattr(published, case.file)
    install = _install_with_pip if case.installer == "pip" else _install_with_pipx

    program = install(python, file, root)
    installed = Installed(program, _home(root), (node,), {"PI_SESSION_MCP_CONFIG": str(_configuration(root))})

    assert installed.run("--version").stdout == f"pi-session-mcp {pi_session_mcp.__version__}\n"
    assert installed.report("runtime", "install")["status"] == "installed"
    assert installed.report("runtime", "status")["node"]["version"] == _version(node / "node")
    assert installed.report("doctor")["ok"] is True
    assert installed.report("demo")["ok"] is True


def _home(root: Path) -> Path:
    home = root / "home"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _configuration(root: Path) -> Path:
    """One in which nothing is wrong."""
    workspace, agent, path = root / "workspace", root / "agent", root / "configuration.json"
    workspace.mkdir()
    write_agent_directory(agent, "http://127.0.0.1:9/v1")
    profile = {"default": True, "permissionProfile": "read-only", **MODEL}
    said = {
        "workspaces": {"project": str(workspace)},
        "piAgentDirectory": str(agent),
        "executionProfiles": {"reader": profile},
    }
    path.write_text(json.dumps(said))
    return path


def _python(version: str) -> str:
    """A Python of that version that can make environments; without one the case is skipped."""
    program = shutil.which(f"python{version}")
    check = "import sys, venv, ensurepip; print('.'.join(map(str, sys.version_info[:2])))"
    said = subprocess.run([program or "false", "-c", check], capture_output=True, text=True, timeout=60, check=False)
    if program is None or said.stdout.strip() != version:
        pytest.skip(f"there is no usable python{version} on PATH")
    return program


def _install_with_pip(python: str, file: Path, root: Path) -> Path:
    _made([python, "-m", "venv", str(root / "env")], root)
    pip(str(root / "env" / "bin" / "python"), "install", "--quiet", str(file))
    return root / "env" / "bin" / "pi-session-mcp"


def _install_with_pipx(python: str, file: Path, root: Path) -> Path:
    pip(sys.executable, "install", "--quiet", "--target", str(root / "pipx"), "pipx")
    places = {"PIPX_HOME": str(root / "pipx home"), "PIPX_BIN_DIR": str(root / "bin")}
    variables = {**places, "PYTHONPATH": str(root / "pipx"), "PIPX_MAN_DIR": str(root / "man")}
    _made([sys.executable, "-m", "pipx", "install", "--quiet", "--python", python, str(file)], root, **variables)
    return root / "bin" / "pi-session-mcp"


def _unpack_node(version: str, into: Path) -> None:
    kind = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    into.mkdir()
    toolchain = find_toolchain(os.environ, ())
    assert toolchain is not None
    npm = toolchain.npm
    assert npm is not None
    _made([*npm, "pack", "--silent", f"node-{sys.platform}-{kind}@{version}"], into)
    (packed,) = into.glob("*.tgz")
    with tarfile.open(packed) as archive:
        member = archive.getmember("package/bin/node")
        member.name = "bin/node"
        archive.extract(member, into, filter="data")
    (into / "bin" / "node").chmod(0o755)


def _link_npm(directory: Path) -> None:
    toolchain = find_toolchain(os.environ, ())
    assert toolchain is not None
    assert toolchain.npm is not None
    script = Path(toolchain.npm[-1])
    assert script.suffix == ".js", "the npm of the checkout's environment is a script for any Node"
    (directory / "npm").symlink_to(script)


def _version(node: Path) -> str:
    said = subprocess.run([str(node), "--version"], capture_output=True, text=True, timeout=60, check=True)
    return said.stdout.strip().removeprefix("v")


def _made(argv: list[str], cwd: Path, **variables: str) -> None:
    cwd.mkdir(parents=True, exist_ok=True)
    ended = run(argv, cwd, {**machine(), "HOME": REAL_HOME, **variables}, within_s=WITHIN_S)
    assert ended.returncode == 0, ended.stderr
