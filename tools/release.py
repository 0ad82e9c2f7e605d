"""The steps of a release that a machine can hold to: the tag fits, the build repeats, the registry has what was built.

    python tools/release.py check v1.2.3
    python tools/release.py build dist
    python tools/release.py compare dist

Each prints one line for each fault and exits with 1 if there is one. The registry is the one of pip's configuration.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
OURS: Final = "pi-session-mcp"
WITHIN_S: Final = 600
_USAGE: Final = "release.py check TAG | build DIRECTORY | compare DIRECTORY"


def main(arguments: Sequence[str]) -> int:
    """Run one step; 0 if there is no fault."""
    match arguments:
        case ["check", tag]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
            faults = tag_faults(tag, __version__, (ROOT / "CHANGELOG.md").read_text("utf-8"), project)
        case ["build", directory]:
            faults = _build_twice(Path(directory))
        case ["compare", directory]:
            with tempfile.TemporaryDirectory(prefix="published-") as fetched:
                _download(Path(fetched))
                faults = differences(digests(Path(directory)), digests(Path(fetched)))
        case _:
            faults = [_USAGE]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def tag_faults(tag: str, version: str, changelog: str, project: Mapping[str, Any]) -> list[str]:
    """Why a commit with this tag cannot be published."""
    faults = []
    if tag != f"v{version}":
        faults.append(f"the tag is {tag}, and the version is {version}")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$", changelog, re.MULTILINE):
        faults.append(f"CHANGELOG.md has no section with a date for {version}")
    if "urls" not in project:
        faults.append("pyproject.toml has no [project.urls]: people could not find the source or report a weakness")
    return faults


def digests(directory: Path) -> dict[str, str]:
    """The SHA-256 of each file in a directory, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(directory.iterdir())}


def differences(built: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """A line for each file that is missing on one side or has other bytes."""
    if not built:
        return ["nothing was built"]
    names = sorted({*built, *others})
    return [f"{name}: {_difference(built, others, name)}" for name in names if built.get(name) != others.get(name)]


def _difference(built: Mapping[str, str], others: Mapping[str, str], name: str) -> str:
    if name not in built:
        return "was not built"
    return "other bytes" if name in others else "is missing"


def _build_twice(into: Path) -> list[str]:
    into.mkdir(parents=True, exist_ok=True)
    if any(into.iterdir()):
        return [f"{into} is not empty"]
    with tempfile.TemporaryDirectory(prefix="release-") as made:
        backend, again = Path(made) / "backend", Path(made) / "again"
        again.mkdir()
        _run("-m", "pip", "install", "--quiet", "--target", str(backend), "hatchling")
        for directory in (into, again):
            build(backend, directory)
        faults = differences(digests(into), digests(again))
    for name, digest in digests(into).items():
        print(f"{digest}  {name}")
    return faults


def build(backend: Path, into: Path) -> None:
    """Build the sdist from the checkout, and the wheel from the sdist. `backend` holds an installed hatchling.

    The wheel is built as by those who have only the sdist. Raises `subprocess.SubprocessError`.
    """
    _hatch(backend, ROOT, "sdist", into)
    (sdist,) = into.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="sdist-") as unpacked:
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (source,) = Path(unpacked).iterdir()
        _hatch(backend, source, "wheel", into)


def _hatch(backend: Path, source: Path, kind: str, into: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(backend)}
    _run("-m", "hatchling", "build", "-t", kind, "-d", str(into.resolve()), cwd=source, environ=environ)


def _download(into: Path) -> None:
    for kind in ("--only-binary", "--no-binary"):
        wanted = (f"{kind}={OURS}", "--no-deps", "--no-cache-dir", "--dest", str(into), f"{OURS}=={__version__}")
        _run("-m", "pip", "download", "--quiet", *wanted)


def _run(*arguments: str, cwd: Path = ROOT, environ: Mapping[str, str] = os.environ) -> None:
    subprocess.run([sys.executable, *arguments], cwd=cwd, env=environ, check=True, stdout=2, timeout=WITHIN_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
