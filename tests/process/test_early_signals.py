"""A signal that comes while the program is still loading ends it with the signal's status and no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.environment import ensure_installed
from tests.support.trees import WAIT_S

SIGNALLED_AT_AN_IMPORT: Final = """
import os
import sys


class Signaller:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["SIGNAL_AT"]:
            os.kill(os.getpid(), int(os.environ["SIGNAL_NUMBER"]))
        return None


sys.meta_path.insert(0, Signaller())
"""
"""Python runs this before anything else; the process gets the signal when it begins to import that module."""

MOMENTS: Final = [
    ("--version", "pi_session_mcp.cli.streams"),
    ("--help", "pi_session_mcp.cli.app"),
    ("setup --help", "pi_session_mcp.cli.help_pages"),
    ("setup codex:user", "pi_session_mcp.cli.program"),
    ("setup --apply codex:user", "pi_session_mcp.setup.run"),
    ("setup --apply codex:user", "anyio"),
    ("doctor", "pi_session_mcp.doctor.installation"),
    ("extensions check", "typer"),
    ("runtime status", "pi_session_mcp.cli.program"),
    ("config check", "pydantic"),
    ("config schema", "typer"),
    ("demo", "pi_session_mcp.cli.program"),
]


def ended(tmp_path: Path, program: list[str], words: str, moment: str, number: int) -> tuple[int, str, str]:
    """The status, the output and the errors of a program that got the signal at that moment."""
    site, home = tmp_path / "site", tmp_path / "home"
    for directory in (site, home):
        directory.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(SIGNALLED_AT_AN_IMPORT)
    environ = {
        "HOME": str(home),
        "PATH": os.defpath,
        "PYTHONPATH": str(site),
        "SIGNAL_AT": moment,
        "SIGNAL_NUMBER": str(number),
    }
    done = subprocess.run(
        [*program, *words.split()],
        env=environ,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S * 3,
        check=False,
    )
    assert sorted(path.name for path in home.iterdir()) == []
    return done.returncode, done.stdout, done.stderr


def script() -> list[str]:
    ensure_installed()
    return [str(Path(sys.executable).parent / "pi-session-mcp")]


@pytest.mark.parametrize(("words", "moment"), MOMENTS)
def test_an_interrupt_while_a_command_is_loading_is_told_in_a_line(tmp_path: Path, words: str, moment: str) -> None:
    told = ended(tmp_path, script(), words, moment, signal.SIGINT)
    assert told == (130, "", "pi-session-mcp: Interrupted.\n")


@pytest.mark.parametrize("moment", ["pi_session_mcp.cli.app", "typer", "pi_session_mcp.setup.run"])
@pytest.mark.parametrize(
    ("number", "status", "code"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_report_says_the_same_whenever_the_signal_came(
    tmp_path: Path, moment: str, number: int, status: int, code: str
) -> None:
    given, out, err = ended(tmp_path, script(), "setup --json codex:user", moment, number)
    assert (given, err) == (status, "")
    assert json.loads(out) == {"schemaVersion": 1, "ok": False, "exitCode": status, "code": code}
    assert out.endswith("\n")
    assert out.count("\n") == 1


@pytest.mark.parametrize("moment", ["pi_session_mcp.server.main", "pi_session_mcp.server.wire.opening"])
def test_serve_says_nothing_at_all(tmp_path: Path, moment: str) -> None:
    assert ended(tmp_path, script(), "serve", moment, signal.SIGINT) == (130, "", "")
    assert ended(tmp_path, script(), "serve", moment, signal.SIGTERM) == (143, "", "")


def test_the_module_does_as_the_command_does(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "pi_session_mcp"]
    told = ended(tmp_path, program, "setup codex:user", "pi_session_mcp.cli.app", signal.SIGINT)
    assert told == (130, "", "pi-session-mcp: Interrupted.\n")


def test_a_command_that_is_to_ignore_the_interrupt_can_still_be_terminated(tmp_path: Path) -> None:
    program = [
        "/bin/sh",
        "-c",
        'trap "" INT; exec "$0" "$@"',
        *script(),
    ]  # as a script starts what it does not wait for
    told = ended(tmp_path, program, "setup codex:user", "pi_session_mcp.setup.run", signal.SIGTERM)
    assert told == (143, "", "pi-session-mcp: Ended by a signal.\n")


def test_an_interrupt_that_is_to_be_ignored_is(tmp_path: Path) -> None:
    program = ["/bin/sh", "-c", 'trap "" INT; exec "$0" "$@"', *script()]
    assert ended(tmp_path, program, "--version", "pi_session_mcp.cli.streams", signal.SIGINT)[0] == 0
