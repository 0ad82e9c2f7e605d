"""Asking a program something is bounded, and nothing of it is left behind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_session_mcp.runtime.probe import ask, node_version
from tests.support.runtimes import program
from tests.support.trees import survivors

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

ENVIRON = {"PATH": "/usr/bin:/bin"}


async def test_a_program_that_does_not_answer_is_ended_in_time(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    stuck = program(tmp_path / "node", f"trap '' TERM; echo $$ > {note}; while :; do sleep 1000; done")

    assert await ask((str(stuck),), ENVIRON, within_s=3.0) is None
    assert note.exists()
    assert not psutil.pid_exists(int(note.read_text()))


async def test_children_that_keep_the_output_open_do_not_keep_us(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    daemon = program(tmp_path / "node", f"echo v24.19.0; setsid sleep 1000 & echo $! > {note}")

    assert await node_version(daemon, ENVIRON) == "v24.19.0"
    assert not psutil.pid_exists(int(note.read_text()))


async def test_a_program_that_says_too_much_is_ended_and_not_believed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    chatty = program(tmp_path / "node", f"echo $$ > {note}; exec yes v24.19.0")

    assert await ask((str(chatty),), ENVIRON, within_s=60.0) is None
    assert not psutil.pid_exists(int(note.read_text()))


async def test_what_changes_how_node_runs_does_not_reach_it(tmp_path: Path) -> None:
    shows = program(tmp_path / "node", "env | grep -c ^NODE_; env | grep ^NODE_")
    environ = ENVIRON | {"NODE_OPTIONS": "--require /x", "NODE_PATH": "/x", "NODE_EXTRA_CA_CERTS": "/certificates"}

    assert await ask((str(shows),), environ) == "1\nNODE_EXTRA_CA_CERTS=/certificates\n"


async def test_asking_leaves_no_descriptor_and_no_process(tmp_path: Path) -> None:
    node = program(tmp_path / "node")
    await node_version(node, ENVIRON)
    before = len(os.listdir("/dev/fd"))

    for _ in range(5):
        await node_version(node, ENVIRON)
        await node_version(tmp_path / "absent", ENVIRON)

    assert len(os.listdir("/dev/fd")) == before
    assert survivors(psutil.Process().children(recursive=True), within_s=0) == []
