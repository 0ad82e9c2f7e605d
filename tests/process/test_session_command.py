"""The owner of a `bash` command, run as a host runs it, and without the kernel's help as on macOS."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_session_mcp.keeper import session_command
from tests.support.trees import WAIT_S, is_alive, kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AS_ON_MACOS = f"""
import sys
sys.path.insert(0, {os.path.dirname(session_command.__file__)!r})
import program
program.processes._IS_LINUX = False
import session_command
session_command.LOOK_AGAIN_S = 0.05
sys.exit(session_command.main(sys.argv[1:]))
"""
LAUNCHER = """
import os, sys
lifeline, report = map(int, sys.argv[1:3])
os.dup2(lifeline, 93)
os.dup2(report, 94)
os.dup2(93, 3)
os.dup2(94, 4)
os.closerange(5, 256)
os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[3:]])
"""
"""Puts the two pipes where a host puts them."""
WAYS = [
    pytest.param(
        [session_command.__file__],
        id="linux",
        marks=pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux"),
    ),
    pytest.param(["-c", AS_ON_MACOS], id="as on macOS"),
]


class Owner:
    """A running owner and what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], lifeline: int, report: int) -> None:
        self.process = process
        self._lifeline: int | None = lifeline
        self._report = report
        self._said = b""

    def let_go(self) -> None:
        """The session has ended."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def hear(self, word: str) -> int:
        """The number beside a word of the report, waiting for it."""
        while True:
            for line in self._said.decode().splitlines():
                if line.split()[0] == word:
                    return int(line.split()[1])
            assert select.select([self._report], [], [], WAIT_S)[0], word
            chunk = os.read(self._report, 512)
            assert chunk, f"the owner ended without {word}"
            self._said += chunk


@contextmanager
def owner(program: list[str], command: str, directory: Path) -> Iterator[Owner]:
    lifeline_end, lifeline = os.pipe()
    report, report_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(lifeline_end), str(report_end), *program, "/bin/sh", "-c"],
        pass_fds=(lifeline_end, report_end),
        env={"PATH": os.environ["PATH"], session_command.COMMAND: command},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(lifeline_end)
    os.close(report_end)
    started = Owner(process, lifeline, report)
    try:
        yield started
        assert process.wait(WAIT_S) == 0
    finally:
        started.let_go()
        os.close(report)
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize("program", WAYS)
@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -TERM $$", 143), ("true", 0)])
def test_an_owner_tells_how_its_command_ended_and_ends_by_itself(
    program: list[str], command: str, code: int, tmp_path: Path
) -> None:
    with owner(program, command, tmp_path) as running:
        assert running.hear("exited") == code


@pytest.mark.parametrize("program", WAYS)
def test_an_owner_stays_with_what_its_command_left_and_ends_it_with_the_session(
    program: list[str], tmp_path: Path
) -> None:
    deaf = "(trap '' TERM HUP; while :; do sleep 1000; done) > /dev/null 2>&1 & echo $! > left"
    with owner(program, deaf, tmp_path) as running:
        assert running.hear("exited") == 0
        left = psutil.Process(int((tmp_path / "left").read_text()))
        try:
            assert running.process.poll() is None
            assert is_alive(left)

            running.let_go()

            assert survivors([left]) == []
        finally:
            kill_all([left])


@pytest.mark.parametrize("program", WAYS)
def test_an_owner_ends_once_what_its_command_left_has_ended(program: list[str], tmp_path: Path) -> None:
    with owner(program, "sleep 1000 > /dev/null 2>&1 & echo $! > left", tmp_path) as running:
        running.hear("exited")
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("program", WAYS)
def test_an_owner_that_is_told_to_end_ends_its_command_and_says_so(program: list[str], tmp_path: Path) -> None:
    with owner(program, "trap '' TERM; while :; do sleep 1000; done", tmp_path) as running:
        shell = psutil.Process(running.hear("started"))

        running.process.terminate()

        assert running.hear("exited") == 137
        assert survivors([shell]) == []


def test_a_shell_that_cannot_be_started_is_a_failure(tmp_path: Path) -> None:
    lifeline_end, lifeline = os.pipe()
    report, report_end = os.pipe()
    started = subprocess.run(
        [sys.executable, "-c", LAUNCHER, str(lifeline_end), str(report_end), session_command.__file__, "/no/shell"],
        pass_fds=(lifeline_end, report_end),
        env={session_command.COMMAND: "true"},
        check=False,
        timeout=WAIT_S,
    )
    for descriptor in (lifeline_end, lifeline, report_end):
        os.close(descriptor)
    with os.fdopen(report) as said:
        assert said.read() == "failed 2\n"
    assert started.returncode == 0
    assert list(tmp_path.iterdir()) == []
