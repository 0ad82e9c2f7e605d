"""However the server ends, and whatever runs at that time, nothing that it started outlives it.

The endings of one state run side by side: most of their time is waiting. The plain run tries each ending, each state,
and in a running turn all that is done to the server alone; `-m matrix` tries the other combinations.
"""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_session_mcp.demo.model import Call, Stall
from tests.support.environment import ensure_installed
from tests.support.real import RealWorld
from tests.support.trees import STUBBORN, kill_all, processes_of, survivors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.process.client import Child

KEEPER_AND_NODE = 2
CODEX_PATIENCE_S = 0.013
"""What the real client leaves between SIGTERM and SIGKILL."""


def to_server(child: Child, number: int) -> None:
    os.kill(child.process.pid, number)


def to_group(child: Child, number: int) -> None:
    os.killpg(child.process.pid, number)


def end_of_input(child: Child, _send: Callable[[Child, int], None]) -> None:
    child.close_stdin()


def interrupt(child: Child, send: Callable[[Child, int], None]) -> None:
    send(child, signal.SIGINT)


def terminate(child: Child, send: Callable[[Child, int], None]) -> None:
    send(child, signal.SIGTERM)


def as_codex_does(child: Child, send: Callable[[Child, int], None]) -> None:
    child.close_stdin()
    send(child, signal.SIGTERM)
    threading.Event().wait(CODEX_PATIENCE_S)
    kill(child, send)


def kill(child: Child, send: Callable[[Child, int], None]) -> None:
    with suppress(ProcessLookupError):  # it may have ended by itself in the meantime
        send(child, signal.SIGKILL)


CODEX = "end of input, SIGTERM, 13 ms, SIGKILL"
ENDINGS = {
    "end of input": (end_of_input, to_server),
    **{
        f"{name} to the {target}": (end, send)
        for name, end in (
            ("SIGINT", interrupt),
            ("SIGTERM", terminate),
            (CODEX, as_codex_does),
            ("SIGKILL", kill),
        )
        for target, send in (("server", to_server), ("group", to_group))
    },
}
IN_THE_PLAIN_RUN = {
    "no host": ("end of input", "SIGINT to the group"),
    "a host started ahead": ("SIGTERM to the server", "SIGKILL to the server"),
    "an idle session": ("SIGINT to the server", f"{CODEX} to the group"),
    "a running turn": tuple(ending for ending in ENDINGS if not ending.endswith("group")),
    "a stuck host": ("SIGTERM to the group", "SIGKILL to the group"),
    "the host just killed": ("end of input", f"{CODEX} to the server"),
    "the keeper just killed": ("SIGTERM to the group", "SIGKILL to the group"),
    "the keeper just stopped": ("end of input", "SIGKILL to the server"),
    "everything just stopped": ("end of input", f"{CODEX} to the server"),
}
"""The states, and the endings of each."""


@dataclass
class Trial:
    """One server in one state, until it has ended."""

    world: RealWorld
    state: str
    child: Child | None = None

    def begin(self) -> None:
        if self.state == "a host started ahead":
            self._ask_at_once()
            return
        self.child = child = self.world.serve()
        if self.state == "no host":
            child.call("pi_session_list")
            return
        session = self.world.start_session(child, "coder")
        if self.state != "an idle session":
            self._start_stubborn_turn(child, session)

    def _ask_at_once(self) -> None:
        """A session is asked for while the server is still being loaded, and has brought its host about."""
        self.child = child = self.world.serve()
        arguments = {"workspace": "project", "executionProfile": "coder"}
        child.start_request("tools/call", {"name": "pi_session_start", "arguments": arguments})
        while len(self.tree()) < KEEPER_AND_NODE:
            threading.Event().wait(0.005)

    def _start_stubborn_turn(self, child: Child, session: str) -> None:
        notes = self.world.directory / "notes"
        script = self.world.directory / "stubborn.sh"
        script.write_text(STUBBORN + "while :; do sleep 1000; done\n")
        ready = notes.with_name("notes.ready")
        os.mkfifo(ready)
        self.world.model.on("go", Call("bash", {"command": f"bash '{script}' '{notes}'"}), Stall())
        answer = child.call("pi_session_prompt", sessionId=session, prompt="go")
        assert answer["ok"], answer
        assert ready.read_text() == "ready\n"

    def tree(self) -> list[psutil.Process]:
        """Every process that the server's start has brought about; the keeper of the host is the first."""
        assert self.child is not None
        found = psutil.Process(self.child.process.pid).children(recursive=True)
        notes = self.world.directory / "notes"
        return found + (processes_of(notes) if notes.exists() else [])

    def disturb(self, tree: list[psutil.Process]) -> None:
        match self.state:
            case "a stuck host":
                os.kill(self.world.host_pid(), signal.SIGUSR2)
                self.world.wait_for_note("stuck")
            case "the host just killed":
                os.kill(self.world.host_pid(), signal.SIGKILL)
            case "the keeper just killed":
                tree[0].kill()
            case "the keeper just stopped":
                tree[0].suspend()
            case "everything just stopped":
                for process in tree:
                    with suppress(psutil.NoSuchProcess):  # a tool's process may have ended since we looked
                        process.suspend()

    def beyond_reach(self, ending: str) -> set[int]:
        """What left its session, when server and keeper were killed in the same instant: the stated limit."""
        if self.state != "the keeper just killed" or "SIGKILL" not in ending:
            return set()
        notes = self.world.directory / "notes"
        session = os.getsid(int((notes / "background").read_text()))
        away = [process for process in processes_of(notes) if os.getsid(process.pid) != session]
        return {process.pid for one in away for process in (one, *one.children(recursive=True))}

    def run(self, ending: str) -> list[str]:
        """What is wrong afterwards."""
        self.begin()
        assert self.child is not None
        tree = self.tree()
        beyond = self.beyond_reach(ending)
        try:
            self.disturb(tree)
            end, send = ENDINGS[ending]
            end(self.child, send)
            self.child.wait()
            return self.faults([process for process in tree if process.pid not in beyond])
        finally:
            kill_all(tree)

    def faults(self, tree: list[psutil.Process]) -> list[str]:
        alive = survivors(tree)
        found = [f"{len(alive)} of {len(tree)} processes are alive"] if alive else []
        if self.state in {"an idle session", "a running turn", "the keeper just killed"}:
            notes = [line for line in self.world.notes() if not line.startswith("pid ")]
            found += [] if notes == ["disposed", "exit 0"] else [f"the host noted {notes}"]
        left = list(self.world.temporary.iterdir())
        return found + ([f"{len(left)} temporary files are left"] if left else [])


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


def combinations() -> Iterator[object]:
    """Each state with the endings of the plain run, and with the others."""
    for state, plain in IN_THE_PLAIN_RUN.items():
        yield pytest.param(state, [*plain], id=state)
        others = [ending for ending in ENDINGS if ending not in plain]
        yield pytest.param(state, others, id=f"{state}, other endings", marks=pytest.mark.matrix)


def test_each_ending_is_in_the_plain_run() -> None:
    assert {ending for endings in IN_THE_PLAIN_RUN.values() for ending in endings} == set(ENDINGS)


@pytest.mark.parametrize(("state", "endings"), [*combinations()])
def test_nothing_outlives_the_server(state: str, endings: list[str], runtime: Runtime, tmp_path: Path) -> None:
    def attempt(number_and_ending: tuple[int, str]) -> tuple[str, list[str]]:
        number, ending = number_and_ending
        with RealWorld(tmp_path / str(number), runtime, traced=True) as world:
            return ending, Trial(world, state).run(ending)

    with ThreadPoolExecutor(2) as side_by_side:
        results = dict(side_by_side.map(attempt, enumerate(endings)))

    assert {ending: faults for ending, faults in results.items() if faults} == {}
