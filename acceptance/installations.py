"""What is under test: this checkout's program, or one that was installed from a wheel."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sys
import tempfile
import venv
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from acceptance.errors import HarnessError
from acceptance.processes import run
from pi_session_mcp.setup import release
from pi_session_mcp.setup.result import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKOUT: Final = Path(__file__).resolve().parents[1]
_WITHIN_S: Final = 900
_WHERE: Final = "import pi_session_mcp, pathlib; print(pathlib.Path(pi_session_mcp.__file__).parent)"


@dataclass(frozen=True, slots=True)
class Installation:
    """A program, the package directory behind it, and in a word where they come from."""

    kind: str
    program: Path
    package: Path

    def fingerprint(self) -> str:
        """SHA-256 over the program and every file of the package; what Python caches is left out."""
        digest = hashlib.sha256()
        files = (path for path in self.package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        for path in (self.program, *sorted(files)):
            digest.update(f"{path}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()


def of_program(program: Path, kind: str) -> Installation:
    """The installation that `program` is the command of. Raises `HarnessError`."""
    python = program.parent / "python"
    if not program.is_file() or not python.exists():
        raise HarnessError("there is no installation of pi-session-mcp there")
    done = run((str(python), "-I", "-c", _WHERE), Path("/"), dict(os.environ), within_s=_WITHIN_S)
    if done.status != 0:
        raise HarnessError("the package behind the program was not found")
    return Installation(kind, program, Path(done.stdout.strip()))


def of_checkout() -> Installation:
    """The editable installation beside the Python that runs us."""
    return of_program(Path(sys.executable).parent / "pi-session-mcp", "checkout")


def stays(installation: Installation) -> bool:
    """Whether setup would register it: what lies in a directory for temporary files is refused, as it should be."""
    inspected = release.Installation(installation.program, installation.package, "", (), is_editable=False)
    try:
        release.require_lasting(inspected, os.environ)
    except Stopped:
        return False
    return True


@contextmanager
def of_wheel(cache: Path, say: Callable[[str], None]) -> Iterator[Installation]:
    """Build a wheel of this checkout and install it below `cache`; when the block is left, nothing is left of it.

    Each has a directory of its own, so that two can be tested at once. Raises `HarnessError`.
    """
    say("Building a wheel and installing it")
    directory = cache / "wheels" / secrets.token_hex(8)
    try:
        with tempfile.TemporaryDirectory(prefix="acceptance-wheel-") as built:
            _pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", built, str(CHECKOUT))
            venv.create(directory, with_pip=True, symlinks=True)
            (wheel,) = Path(built).glob("*.whl")
            _pip(directory / "bin" / "python", "install", str(wheel))
        installation = of_program(directory / "bin" / "pi-session-mcp", "wheel")
        if not stays(installation):
            raise HarnessError("the cache lies where setup registers nothing from: name another with --cache")
        yield installation
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _pip(python: Path, *words: str) -> None:
    options = ("--disable-pip-version-check", "--quiet")
    done = run((str(python), "-m", "pip", *words, *options), CHECKOUT, dict(os.environ), within_s=_WITHIN_S)
    if done.status != 0:
        raise HarnessError(f"pip failed:\n{done.stderr}")
