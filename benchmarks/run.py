"""The order of a benchmark: rounds that alternate between servers, within a bound on the whole."""

from __future__ import annotations

import os
import platform
import shlex
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import rounds
from benchmarks.client import ANSWER_WITHIN_S, Failed, Launch
from benchmarks.figures import Samples
from benchmarks.report import Measured
from benchmarks.world import World, world
from pi_session_mcp.runtime.locate import Runtime, locate
from pi_session_mcp.runtime.overrides import NothingAsked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.rounds import Amounts, Values

REFERENCE: Final = "reference"
OURS: Final = "pi-session-mcp"
_SCRIPTS: Final = Path(__file__).with_name("reference")


@dataclass(frozen=True, slots=True)
class Plan:
    """How often each kind of run is made, and when the rounds end.

    No round begins after `begin_within_s`; no wait in one lasts longer than until `over_within_s`. Idle servers are
    looked at before the rounds, within a time of their own: a busy machine makes them late, and nothing of it is a
    figure.
    """

    handshakes: int
    first_turns: int
    works: int
    amounts: Amounts
    begin_within_s: float
    over_within_s: float
    idle_within_s: float


@dataclass(frozen=True, slots=True)
class Subject:
    """A server command that is measured."""

    name: str
    command: tuple[str, ...]
    samples: Samples = field(default_factory=Samples)


class Benchmark:
    """One run of the whole. `say` gets a line for each step."""

    def __init__(self, plan: Plan, subjects: Sequence[Subject], runtime: Runtime, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._subjects = list(subjects)
        self._runtime = runtime
        self._say = say
        self._began = time.perf_counter()
        self._until = self._began + plan.over_within_s
        self._machine = machine(runtime)
        self._failures: list[str] = []
        self._bare: dict[str, list[float]] = {}

    def run(self) -> Measured:
        """Measure; what fails is noted and the rest goes on."""
        with world() as place:
            self._warm_up(place)
            self._measure_idle(place)
            begin_until = time.perf_counter() + self._plan.begin_within_s
            self._until = time.perf_counter() + self._plan.over_within_s
            for number in range(max(self._plan.handshakes, self._plan.first_turns, self._plan.works)):
                if time.perf_counter() < begin_until:
                    self._round(place, number)
        names = (self._subjects[0].name, self._subjects[-1].name)
        theirs = self._subjects[1].samples if len(self._subjects) > 1 else None
        bare = {name: statistics.median(values) for name, values in self._bare.items()}
        took_s = time.perf_counter() - self._began
        return Measured(self._machine, names, self._subjects[0].samples, theirs, bare, self._failures, took_s)

    def _warm_up(self, place: World) -> None:
        """Files are read and caches are written once before anything is measured."""
        for subject in self._subjects:
            self._measure(subject, None, rounds.first_turn, place)

    def _round(self, place: World, number: int) -> None:
        order = self._subjects if number % 2 == 0 else self._subjects[::-1]
        self._say(f"round {number + 1}, after {time.perf_counter() - self._began:.0f} s")
        for limit, measure in (
            (self._plan.handshakes, rounds.handshake),
            (self._plan.first_turns, rounds.first_turn),
            (self._plan.works, lambda launch: rounds.work(launch, self._plan.amounts)),
        ):
            for subject in order if number < limit else ():
                self._measure(subject, number, measure, place)
        if number < self._plan.works:
            self._measure_bare(place, number)

    def _measure(self, subject: Subject, number: int | None, measure: Callable[[Launch], Values], place: World) -> None:
        try:
            values = measure(_launch(subject, place, self._until))
        except Failed as failure:
            self._failures.append(f"{subject.name}: {failure}")
        else:
            if number is not None:
                subject.samples.add(number, values)

    def _measure_bare(self, place: World, number: int) -> None:
        script, sdk = str(_SCRIPTS / "bare.mjs"), str(self._runtime.sdk_entry)
        command = [str(self._runtime.node), script, sdk, str(self._plan.amounts.turns)]
        try:
            values = rounds.bare(command, place.environment)
        except Failed as failure:
            self._failures.append(str(failure))
            return
        for name, value in values.items():
            self._bare.setdefault(name, []).append(value)
        for subject in self._subjects:
            turn = subject.samples.of("turn_p50").get(number)
            if turn is not None:
                subject.samples.add(number, {"turn_overhead": turn - values["later turns, p50"]})

    def _measure_idle(self, place: World) -> None:
        """Twice if need be: the look takes a fixed time, but the way to it as long as the machine is busy."""
        failure = self._idle(place) and self._idle(place)
        if failure:
            self._failures.append(f"idle: {failure}")

    def _idle(self, place: World) -> str:
        """What went wrong, or nothing."""
        deadline = time.perf_counter() + self._plan.idle_within_s
        launches = [_launch(subject, place, deadline, self._plan.idle_within_s) for subject in self._subjects]
        try:
            seen = rounds.idle(launches, self._plan.amounts.idle_s)
        except Failed as failure:
            return str(failure)
        for subject, values in zip(self._subjects, seen, strict=True):
            subject.samples.add(0, values)
        return ""


def _launch(subject: Subject, place: World, deadline: float, answer_within_s: float = ANSWER_WITHIN_S) -> Launch:
    return Launch(subject.command, place.environment, place.directory, deadline, answer_within_s)


def subject(words: str, name: str, runtime: Runtime) -> Subject:
    """The server that is meant: `reference`, `pi-session-mcp` (the one beside this Python), or any command line.

    `name` is what a command line is called in tables.
    """
    if words == REFERENCE:
        return Subject(REFERENCE, (str(runtime.node), str(_SCRIPTS / "server.mjs"), str(runtime.sdk_entry)))
    if words == OURS:
        return Subject(OURS, (str(Path(sys.executable).with_name(OURS)), "serve"))
    return Subject(name, tuple(shlex.split(words)))


def installed_runtime() -> Runtime:
    """The Node and the Pi SDK that `runtime install` has installed. Raises `Refusal`."""
    return locate(NothingAsked(), dict(os.environ), Path.cwd())


def machine(runtime: Runtime) -> dict[str, str]:
    """The machine in words, without any name of it, and how busy it is."""
    return {
        "processors": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "Node": runtime.node_version or "unknown",
        "Pi SDK": runtime.sdk_version,
        "load of the machine before": f"{os.getloadavg()[0]:.1f}",
    }
