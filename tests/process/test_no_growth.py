"""Hundreds of sessions leave a server as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support import rounds
from tests.support.environment import ensure_installed
from tests.support.real import RealWorld

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024


def test_two_hundred_rounds_leave_descriptors_tasks_processes_and_memory_as_they_were(tmp_path: Path) -> None:
    with RealWorld(tmp_path / "world", ensure_installed(), traced=True) as world:
        command = [sys.executable, rounds.__file__, str(world.configuration), "220", "20,220"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=world.environment, **pipes) as process:  # type: ignore[call-overload]
            before, after = (weigh(process, world) for _ in range(2))
        assert process.returncode == 0

    counted = ("descriptors", "tasks", "processes", "host descriptors")
    assert {name: after[name] for name in counted} == {name: before[name] for name in counted}
    assert after["memory"] - before["memory"] < 4 * MIB
    assert after["host heap"] - before["host heap"] < 4 * MIB


def weigh(process: subprocess.Popen[str], world: RealWorld) -> dict[str, int]:
    """What the process says that it holds, and what its host's live objects weigh; lets it go on."""
    assert process.stdin is not None
    assert process.stdout is not None
    said: dict[str, int] = json.loads(process.stdout.readline())
    said["host heap"] = world.host_heap()
    process.stdin.write("\n")
    process.stdin.flush()
    return said
