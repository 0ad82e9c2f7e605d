"""No process of the same user can look into the server or a keeper, or reach the client's stream through them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.keeper import session_command
from tests.process.conftest import TRIVIAL
from tests.process.test_keeper import FOREVER, OWNER
from tests.process.test_session_command import owner
from tests.support import powers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.process.conftest import Start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes in a file system")

POWERLESS = (sys.executable, powers.__file__)
"""What a command is run by, so that being root does not open every door."""

ATTACK = """
import ctypes, json, os, sys
pid, reached = sys.argv[1], []

def attempt(name, act):
    try:
        act()
    except OSError:
        return
    reached.append(name)

def steal(descriptor):
    taken = ctypes.CDLL(None).syscall(438, os.pidfd_open(int(pid)), descriptor, 0)  # pidfd_getfd(2)
    if taken < 0:
        raise OSError

attempt("environ", lambda: open(f"/proc/{pid}/environ", "rb").read(1))
attempt("mem", lambda: open(f"/proc/{pid}/mem", "rb"))
attempt("cwd", lambda: os.readlink(f"/proc/{pid}/cwd"))
for descriptor in range(64):
    attempt("read", lambda: os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK))
    attempt("write", lambda: os.open(f"/proc/{pid}/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK))
    attempt("steal", lambda: steal(descriptor))
print(json.dumps(sorted(set(reached))))
"""
EVERYTHING = {"environ", "mem", "cwd", "read", "write"}
"""Where a system forbids to attach to any process but one's child, `steal` fails everywhere, and `mem` may."""


def reached_in(pid: int) -> set[str]:
    """What another process of this user can reach in that process."""
    words = [*POWERLESS, sys.executable, "-I", "-S", "-c", ATTACK, str(pid)]
    return set(json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout))


def test_a_server_is_closed_to_other_processes_before_it_answers_and_after(start: Start) -> None:
    child = start(command=(*POWERLESS, *TRIVIAL))
    assert child.request("ping")["result"] == {}
    assert reached_in(child.process.pid) == set()

    child.initialize()
    assert child.call("pi_session_list", do="echo", text="x") == {"echo": "x"}
    assert reached_in(child.process.pid) == set()


def test_the_owner_of_a_session_s_command_is_closed_to_other_processes(tmp_path: Path) -> None:
    with owner([*POWERLESS[1:], sys.executable, "-I", "-S", session_command.__file__], "sleep 1000", tmp_path) as one:
        one.hear("started")
        assert reached_in(one.process.pid) == set()
        one.let_go()


def test_a_keeper_is_closed_to_other_processes_and_what_it_runs_is_not(tmp_path: Path) -> None:
    words = [*POWERLESS, sys.executable, "-c", OWNER, "0", FOREVER]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, text=True, env={**os.environ}, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            keeper, command = map(int, process.stdout.readline().split())
            assert reached_in(keeper) == set()
            assert reached_in(command) >= EVERYTHING - {"mem"}
        finally:
            process.kill()
