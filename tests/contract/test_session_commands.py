"""Closing a session of the real server ends what its commands have left in the background, and nobody else's."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil

from pi_session_mcp.demo.model import Call, Echo, Say
from tests.support.environment import ensure_installed
from tests.support.real import RealWorld, run_turn
from tests.support.trees import is_alive, kill_all, survivors

COMMAND = (
    "nohup sleep 1000 > /dev/null 2>&1 & echo $! > {name}; (sh -c 'echo $$ > {name}-daemon; exec sleep 1000' &); "
    "until [ -s {name}-daemon ]; do sleep 0.01; done"
)


def test_a_closed_session_takes_along_what_it_left_in_the_background(tmp_path: Path) -> None:
    with RealWorld(tmp_path / "world", ensure_installed()) as world:
        child = world.serve()
        left = {}
        for name in ("staying", "closed"):
            world.model.on(name, Call("bash", {"command": COMMAND.format(name=name)}), Say("started"))
            session = world.start_session(child, "coder")
            assert run_turn(child, session, name)["assistantText"] == "started"
            notes = (world.workspace / name, world.workspace / f"{name}-daemon")
            left[name] = (session, [psutil.Process(int(note.read_text())) for note in notes])
        try:
            assert child.call("pi_session_close", sessionId=left["closed"][0])["ok"]

            assert survivors(left["closed"][1]) == []
            assert all(map(is_alive, left["staying"][1]))
            child.close_stdin()
            assert child.wait() == os.EX_OK
            assert survivors(left["staying"][1]) == []
        finally:
            kill_all([process for _, processes in left.values() for process in processes])


def test_a_temporary_directory_that_is_not_there_holds_nothing_up(tmp_path: Path) -> None:
    with RealWorld(tmp_path / "world", ensure_installed()) as world:
        world.model.on("much", Call("bash", {"command": "echo $TMPDIR > named; seq 1 50000"}), Echo())
        child = world.serve(TMPDIR=str(tmp_path / "nowhere"))
        session = world.start_session(child, "coder")

        answer = run_turn(child, session, "much")["assistantText"]

        named = Path((world.workspace / "named").read_text().strip())
        (kept,) = re.findall(r"Full output: (\S+/pi-bash-\w+\.log)\]", answer)
        assert Path(kept).parent == named
        assert Path(kept).stat().st_size > 200_000
        assert child.call("pi_session_close", sessionId=session)["ok"]
        assert not Path(kept).exists()
