"""Asking a program for its version: briefly, and leaving nothing behind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_session_mcp.doctor.subjects.node import node_version
from tests.support.runtimes import program
from tests.support.trees import survivors

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {"PATH": os.defpath}


def test_a_program_is_asked_for_its_version_and_for_nothing_else(tmp_path: Path) -> None:
    node = program(tmp_path / "node", f'echo "$#:$1" > {tmp_path}/asked; echo v24.19.0')

    assert node_version(node, ENVIRON) == "v24.19.0"
    assert (tmp_path / "asked").read_text() == "1:--version\n"


@pytest.mark.parametrize(
    "script",
    ["exit 1", "echo v24.19.0; exit 1", "yes", "kill -9 $$", "echo v24.19.0; exec sleep 1000", "exec >&-; sleep 1000"],
)
def test_a_program_that_fails_floods_or_hangs_has_no_version(script: str, tmp_path: Path) -> None:
    assert node_version(program(tmp_path / "node", script), ENVIRON, within_s=0.5) is None


def test_what_is_no_program_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "node").write_text("no program")
    (tmp_path / "node").chmod(0o755)

    assert node_version(tmp_path / "node", ENVIRON) is None
    assert node_version(tmp_path / "nowhere", ENVIRON) is None


def test_a_program_that_hangs_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    node = program(tmp_path / "node", f"sleep 1000 & echo $! $$ > {notes}; wait")

    assert node_version(node, ENVIRON, within_s=2.0) is None
    pids = [int(pid) for pid in notes.read_text().split()]
    assert survivors([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]) == []
