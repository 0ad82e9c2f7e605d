"""What the harness looks at by itself: real files, installations, processes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from acceptance.errors import HarnessError
from acceptance.installations import Installation, of_program
from acceptance.observer import real_files
from acceptance.processes import MARK, Started, end_all, left_of, run

if TYPE_CHECKING:
    from pathlib import Path

SLEEPER = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")


def test_real_files_are_found_as_the_clients_find_them(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_bytes(b"claude")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "config.toml").write_bytes(b"codex")

    seen = real_files({"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "c"), "COPILOT_HOME": ""})

    assert seen == {"claude-code": b"claude", "codex": b"codex", "copilot": None}


def test_a_changed_added_or_removed_file_changes_an_installation(tmp_path: Path) -> None:
    package, program = tmp_path / "package", tmp_path / "program"
    (package / "__pycache__").mkdir(parents=True)
    (package / "a.py").write_text("a")
    program.write_text("p")
    installation = Installation("other", program, package)
    seen = [installation.fingerprint()]

    (package / "__pycache__" / "a.pyc").write_text("cached")
    assert installation.fingerprint() == seen[0]

    for change in (
        lambda: (package / "a.py").write_text("b"),
        lambda: (package / "b.py").write_text(""),
        lambda: (package / "b.py").rename(package / "c.py"),
        lambda: program.write_text("q"),
    ):
        change()
        seen.append(installation.fingerprint())
    assert len(set(seen)) == len(seen)


def test_what_is_no_installation_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(HarnessError):
        of_program(tmp_path / "pi-session-mcp", "other")


def test_marked_processes_are_found_in_whatever_session_and_ended(tmp_path: Path) -> None:
    environ = {**os.environ, MARK: f"mark-{os.getpid()}"}
    sleeper = f"os.execv({sys.executable!r}, {list(SLEEPER)!r})"
    # The process between us and the daemon has ended when the command has.
    daemon = f"import os; pid = os.fork(); pid and os.waitpid(pid, 0); pid or (os.setsid(), os.fork() or {sleeper})"

    run((sys.executable, "-c", daemon), tmp_path, environ, within_s=60)

    assert len(left_of(environ[MARK], within_s=0)) == 1
    end_all(environ[MARK], grace_s=0.1)
    assert left_of(environ[MARK], within_s=0) == []
    assert left_of("another", within_s=0) == []


def test_leaving_the_block_ends_a_command(tmp_path: Path) -> None:
    environ = {**os.environ, MARK: f"block-{os.getpid()}"}
    with Started(SLEEPER, tmp_path, environ) as started:
        assert not started.is_over_within(0)

    assert left_of(environ[MARK], within_s=0) == []


def test_a_command_that_takes_too_long_is_the_harness_s_trouble(tmp_path: Path) -> None:
    with pytest.raises(HarnessError):
        run(SLEEPER, tmp_path, os.environ, within_s=0.1)
    with pytest.raises(HarnessError):
        run((str(tmp_path / "absent"),), tmp_path, os.environ, within_s=1)
