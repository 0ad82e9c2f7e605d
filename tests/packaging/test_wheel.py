"""What is published: what is in it, and that it works where no checkout is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import pi_session_mcp

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).parents[2]
REAL_HOME: Final = os.environ.get("HOME", "")
"""Of whoever runs the tests, taken before a test hides it: pip's and npm's caches are there."""
LIMIT_S: Final = 170
ONLY_FOR_DEVELOPMENT: Final = frozenset({"sdk.d.ts", "tsconfig.json"})
NEEDED: Final = (
    "pi_session_mcp/config/schema.json",
    "pi_session_mcp/doctor/checks.py",
    "pi_session_mcp/host/js/host.mjs",
    "pi_session_mcp/keeper/program.py",
    "pi_session_mcp/py.typed",
    "pi_session_mcp/runtime/lock/package-lock.json",
    "pi_session_mcp/runtime/lock/package.json",
)


@dataclass(frozen=True, slots=True)
class Published:
    """The two files of a release."""

    sdist: Path
    wheel: Path


@dataclass(frozen=True, slots=True)
class Installed:
    """The wheel in an environment of its own, in a place with spaces and more than ASCII, far from any checkout."""

    bin: Path
    home: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the installed program, with only the caches and certificates of this machine."""
        argv = [str(self.bin / "pi-session-mcp"), *arguments]
        return _run(argv, self.home, {**_machine(), "HOME": str(self.home), "NPM_CONFIG_CACHE": f"{REAL_HOME}/.npm"})

    def report(self, *arguments: str) -> dict[str, Any]:
        """Its JSON report."""
        ended = self.run(*arguments, "--json")
        report: dict[str, Any] = json.loads(ended.stdout)
        assert ended.returncode == report["exitCode"], ended.stderr
        return report


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A release, built as build tools do it: the wheel from the unpacked sdist."""
    root = tmp_path_factory.mktemp("release")
    backend = root / "backend"
    _pip(sys.executable, "install", "--quiet", "--target", str(backend), "hatchling")
    _build(backend, ROOT, "sdist", root)
    (sdist,) = root.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(root / "unpacked", filter="data")
    (source,) = (root / "unpacked").iterdir()
    _build(backend, source, "wheel", root)
    (wheel,) = root.glob("*.whl")
    return Published(sdist, wheel)


@pytest.fixture(scope="module")
def installed(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an empty environment."""
    root = tmp_path_factory.mktemp("away") / "ein Pfad mit ünïcode 日本"
    home = root / "home"
    home.mkdir(parents=True)
    venv.create(root / "env", with_pip=False, symlinks=True)
    python = root / "env" / "bin" / "python"
    _pip(sys.executable, "--python", str(python), "install", "--quiet", "--no-compile", f"{published.wheel}[node]")
    return Installed(root / "env" / "bin", home)


def test_the_wheel_holds_the_package_and_nothing_else(published: Published) -> None:
    with zipfile.ZipFile(published.wheel) as wheel:
        names = wheel.namelist()
    package = {name for name in names if name.startswith("pi_session_mcp/")}

    assert package == {
        name for name in _of_the_project("pi_session_mcp") if Path(name).name not in ONLY_FOR_DEVELOPMENT
    }
    assert package.issuperset(NEEDED)
    assert {name.split("/", 1)[0] for name in names} == {
        "pi_session_mcp",
        f"pi_session_mcp-{pi_session_mcp.__version__}.dist-info",
    }


def test_the_wheel_brings_one_command_and_its_license(published: Published) -> None:
    information = f"pi_session_mcp-{pi_session_mcp.__version__}.dist-info"
    with zipfile.ZipFile(published.wheel) as wheel:
        commands = wheel.read(f"{information}/entry_points.txt").decode()
        names = wheel.namelist()

    assert commands.split() == ["[console_scripts]", "pi-session-mcp", "=", "pi_session_mcp.__main__:main"]
    assert f"{information}/licenses/LICENSE" in names


def test_the_sdist_holds_what_git_does_not_ignore_and_all_that_the_tests_need(published: Published) -> None:
    with tarfile.open(published.sdist) as sdist:
        members = sdist.getmembers()
    names = {member.name.split("/", 1)[1] for member in members}

    assert names - {"PKG-INFO"} <= set(_of_the_project("."))
    assert names.issuperset(
        {*NEEDED, *_of_the_project("pi_session_mcp"), *_of_the_project("completions"), *_of_the_project("tests")}
    )
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= names
    assert all(member.isreg() for member in members)


def test_the_installed_program_says_its_version_and_its_schema(installed: Installed) -> None:
    version = installed.run("--version")
    schema = installed.run("config", "schema")

    assert (version.returncode, version.stdout) == (0, f"pi-session-mcp {pi_session_mcp.__version__}\n")
    assert json.loads(schema.stdout)["title"] == "pi-session-mcp configuration"


def test_the_installed_program_puts_the_runtime_beside_itself_and_shows_the_main_job(installed: Installed) -> None:
    before = installed.report("runtime", "status")
    made = installed.report("runtime", "install")
    after = installed.report("runtime", "status")
    demo = installed.report("demo")

    assert before["ok"] is False
    assert made["status"] == "installed"
    assert after["status"] == "ok"
    assert [step["name"] for step in demo["steps"] if not step["ok"]] == []
    assert demo["ok"] is True


def _of_the_project(below: str) -> list[str]:
    """The files below a directory of the checkout that git does not ignore; elsewhere nothing can be compared with."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", below]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, check=False, timeout=LIMIT_S)
    if listed.returncode:
        pytest.skip("this is no git checkout, so there is no list of what belongs to the project")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [name for name in names if (ROOT / name).is_file()]


def _build(backend: Path, source: Path, kind: str, into: Path) -> None:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    ended = _run(argv, source, {**_machine(), "HOME": str(into), "PYTHONPATH": str(backend)})
    assert ended.returncode == 0, ended.stderr


def _pip(python: str, *arguments: str) -> None:
    cache = {"HOME": REAL_HOME} if REAL_HOME else {}
    argv = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    ended = _run(argv, ROOT.parent, {**_machine(), **cache})
    assert ended.returncode == 0, ended.stderr


def _machine() -> dict[str, str]:
    """What a machine needs to reach its registries, and nothing of a person or of Python."""
    wanted = (
        "PATH",
        "PIP_",
        "SSL_",
        "NODE_EXTRA_CA_CERTS",
        "HTTP",
        "NO_PROXY",
        "http",
        "no_proxy",
        "NPM_CONFIG_",
        "npm_",
    )
    return {name: value for name, value in os.environ.items() if name.startswith(wanted)} | {"LC_ALL": "C.UTF-8"}


def _run(argv: list[str], cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )
