"""The command line as a child process: what a shell sees of it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PROGRAM: Final = "import sys; from pi_session_mcp.cli.app import main; sys.exit(main())"
LIMIT_S: Final = 60


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs the command line in a directory and an environment of the test's own."""

    home: Path

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Nothing of this machine but `PATH`, and `extra`."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), **(extra or {})}

    def argv(self, *arguments: str) -> list[str]:
        """The command line as a list for a new process."""
        return [sys.executable, "-c", _PROGRAM, *arguments]

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run to the end, with both streams piped."""
        ended = subprocess.run(
            self.argv(*arguments),
            cwd=self.home,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in an empty home."""
    return Shell(tmp_path)
