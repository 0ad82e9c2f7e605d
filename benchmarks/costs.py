"""`python -m benchmarks.costs`: which process pays for what.

The CPU time of each process from the spawn to the first turn; that of one start of a session, one turn, one read and
one close, as the mean of many; and the memory of each process on the way. CPU time hardly depends on how busy the
machine is. It comes in ticks of 10 ms, so that many operations are counted together.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from benchmarks import tree
from benchmarks.client import Client, Failed, Launch
from benchmarks.documents import say
from benchmarks.growth import cell
from benchmarks.parts import Part
from benchmarks.report import NOT_MEASURED, number, table
from benchmarks.rounds import SESSIONS, start, turn
from benchmarks.world import world

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.growth import Memory
    from benchmarks.run import Subject

MARK: Final = "costs"
TITLE: Final = "Which process pays for what"
WITHIN_S: Final = 120.0
_TURNS: Final = 200
_READS: Final = 2000

Cpu = dict[str, float]
"""Milliseconds by process: the server's own name for the server, and the roles of `tree.by_role` for the others."""


class Costs:
    """What one server's processes took: rows of a table by step, columns by process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cpu: dict[str, Cpu] = {}
        self.memory: dict[str, dict[str, Memory]] = {}

    def note_cpu(self, step: str, before: Cpu, after: Cpu, amount: int) -> None:
        """The mean of so many operations between two looks."""
        self.cpu[step] = {self._column(role): (after[role] - before.get(role, 0.0)) / amount for role in after}

    def note_memory(self, step: str, seen: Mapping[str, Memory]) -> None:
        """The memory of each process at this step."""
        self.memory[step] = {self._column(role): one for role, one in seen.items()}

    def _column(self, role: str) -> str:
        return self.name if role == tree.SERVER else f"its {role}"


def part(subjects: Sequence[Subject]) -> Part:
    """Measure every server once; within two minutes each, or it failed."""
    costs, failures = [], []
    with world() as place:
        for subject in subjects:
            say(f"measuring: {MARK}, {subject.name}")
            launch = Launch(
                subject.command, place.environment, place.directory, time.perf_counter() + WITHIN_S, WITHIN_S
            )
            costs.append(Costs(subject.name))
            try:
                _measure(launch, costs[-1])
            except Failed as failure:
                failures.append(f"{subject.name}: {failure}")
    return Part(MARK, TITLE, as_text(costs), values=_values(costs), failures=failures)


def _measure(launch: Launch, costs: Costs) -> None:
    with Client(launch) as client:
        client.handshake()
        _look(client, costs, "`tools/list` answered")
        costs.note_cpu("from the spawn until idle, no session", {}, _cpu(client), 1)
        sessions = [start(client)]
        _look(client, costs, "1 session")
        turn(client, sessions[0])
        costs.note_cpu("from the spawn until the first turn was done", {}, _cpu(client), 1)
        _spend(client, costs, "start of a session, warm", SESSIONS - 1, lambda _: sessions.append(start(client)))
        _look(client, costs, f"{SESSIONS} sessions")
        for session in sessions[1:]:
            turn(client, session)
        _look(client, costs, f"{SESSIONS} sessions after a turn each")
        _spend(client, costs, "a turn, not the first", _TURNS, lambda done: turn(client, sessions[done % SESSIONS]))
        _look(client, costs, f"{SESSIONS} sessions after {_TURNS // SESSIONS + 1} turns each")
        first = {"sessionId": sessions[0], "turnId": turn(client, sessions[0])[1]}
        _spend(client, costs, "`pi_turn_get`", _READS, lambda _: client.call("pi_turn_get", **first))
        close = "close of a session"
        _spend(client, costs, close, SESSIONS, lambda done: client.call("pi_session_close", sessionId=sessions[done]))
        client.end()


def _look(client: Client, costs: Costs, step: str) -> None:
    client.settle()
    costs.note_memory(step, {role: tree.memory_of(one) for role, one in tree.by_role(client.pid).items()})


def _spend(client: Client, costs: Costs, step: str, amount: int, operation: Callable[[int], object]) -> None:
    """Do something so many times, and note what it took, with what is done afterwards because of it."""
    before = _cpu(client)
    for done in range(amount):
        operation(done)
    client.settle()
    costs.note_cpu(step, before, _cpu(client), amount)


def _cpu(client: Client) -> Cpu:
    return {role: tree.cpu_of(one) for role, one in tree.by_role(client.pid).items()}


def as_text(costs: Sequence[Costs]) -> str:
    """Two tables in Markdown: CPU time and memory, with a column for each process. Pure."""
    cpu = _table("CPU for one, ms", [{step: _numbers(row) for step, row in one.cpu.items()} for one in costs])
    cells = [
        {step: {name: cell(seen) for name, seen in row.items()} for step, row in one.memory.items()} for one in costs
    ]
    return f"{cpu}\n\n{_table('Memory, MiB: RSS (PSS)', cells)}\n"


def _numbers(row: Mapping[str, float]) -> dict[str, str]:
    return {name: number(value) for name, value in row.items()}


def _table(title: str, servers: Sequence[Mapping[str, Mapping[str, str]]]) -> str:
    steps = list(dict.fromkeys(step for server in servers for step in server))
    columns = list(dict.fromkeys(name for server in servers for row in server.values() for name in row))
    rows = [[step, *(_found(servers, step, name) for name in columns)] for step in steps]
    return table([[title, *columns], *rows])


def _found(servers: Sequence[Mapping[str, Mapping[str, str]]], step: str, name: str) -> str:
    found = [row[name] for server in servers if name in (row := server.get(step, {}))]
    return found[0] if found else NOT_MEASURED


def _values(costs: Sequence[Costs]) -> dict[str, object]:
    return {one.name: {"cpuMs": one.cpu, "memoryMib": _memory(one)} for one in costs}


def _memory(costs: Costs) -> dict[str, dict[str, dict[str, float]]]:
    return {
        step: {name: {"pss": seen.pss, "rss": seen.rss} for name, seen in row.items()}
        for step, row in costs.memory.items()
    }


if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["--part", MARK, *sys.argv[1:]]))
