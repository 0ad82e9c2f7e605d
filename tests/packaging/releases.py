"""A release made from this checkout, and environments in which nothing but it is installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools import release

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).parents[2]
REAL_HOME: Final = os.environ.get("HOME", "")
"""Of whoever runs the tests, taken before a test hides it: pip's and npm's caches are there."""
LIMIT_S: Final = 500
AWKWARD: Final = "ein Pfad mit ünïcode 日本"
"""The name of a directory that programs must cope with."""


@dataclass(frozen=True, slots=True)
class Published:
    """The two files of a release."""

    sdist: Path
    wheel: Path


@dataclass(frozen=True, slots=True)
class Installed:
    """The command of an installation, a home for it, and what stands first on its `PATH`."""

    program: Path
    home: Path
    first_on_path: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the installed program, with only the caches and certificates of this machine."""
        environ = {**machine(), "HOME": str(self.home), "NPM_CONFIG_CACHE": f"{REAL_HOME}/.npm", **self.variables}
        environ["PATH"] = os.pathsep.join([*map(str, self.first_on_path), environ["PATH"]])
        return run([str(self.program), *arguments], self.home, environ)

    def report(self, *arguments: str) -> dict[str, Any]:
        """Its JSON report."""
        ended = self.run(*arguments, "--json")
        report: dict[str, Any] = json.loads(ended.stdout)
        assert ended.returncode == report["exitCode"], ended.stderr
        return report


def publish(root: Path) -> Published:
    """A release below `root`, built as build tools do it: the wheel from the unpacked sdist."""
    backend = root / "backend"
    pip(sys.executable, "install", "--quiet", "--target", str(backend), "hatchling")
    release.build(backend, root)
    (sdist,) = root.glob("*.tar.gz")
    (wheel,) = root.glob("*.whl")
    return Published(sdist, wheel)


def pip(python: str, *arguments: str) -> None:
    """Run the pip of `python`; it must do what it is told."""
    cache = {"HOME": REAL_HOME} if REAL_HOME else {}
    argv = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    ended = run(argv, ROOT.parent, {**machine(), **cache})
    assert ended.returncode == 0, ended.stderr


def machine() -> dict[str, str]:
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


def run(
    argv: list[str], cwd: Path, environ: Mapping[str, str], *, within_s: int = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without standard input. One that takes too long is ended with all that it started."""
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=within_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)
