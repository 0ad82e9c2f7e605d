"""`python -m benchmarks.sessions`: what 1, 10, 50, 100 and 250 open sessions cost, beside the reference.

One run of a server opens session after session; at each of these numbers it settles, its memory is taken, every session
makes a turn at the same time, and a turn is read. 250 is near the most that a server may hold: `limits.maxSessions` is
at most 256.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks import tree
from benchmarks.client import Client, Failed, Launch
from benchmarks.documents import say
from benchmarks.figures import COUNTS, MANY, many_key, percentile
from benchmarks.parts import Part
from benchmarks.report import sections_as_json, sections_as_text
from benchmarks.rounds import all_at_once, ms, reads, start
from benchmarks.world import world

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.rounds import Values
    from benchmarks.run import Subject

MARK: Final = "sessions"
TITLE: Final = "Many sessions"
_ANSWER_WITHIN_S: Final = 60.0
_READS: Final = 200


@dataclass(frozen=True, slots=True)
class Amounts:
    """How many rounds are made and up to how many sessions. The bounds are as those of `run.Plan`."""

    rounds: int
    counts: Sequence[int]
    begin_within_s: float
    over_within_s: float


THOROUGH: Final = Amounts(2, COUNTS, begin_within_s=70, over_within_s=170)
QUICK: Final = Amounts(1, COUNTS[:3], begin_within_s=1, over_within_s=60)


def part(subjects: Sequence[Subject], amounts: Amounts) -> Part:
    """Measure every server in turn; the order changes with each round."""
    failures: list[str] = []
    began = time.perf_counter()
    with world() as place:
        for number in range(amounts.rounds):
            if number and time.perf_counter() - began >= amounts.begin_within_s:
                break
            for subject in subjects if number % 2 == 0 else subjects[::-1]:
                say(f"many sessions, round {number + 1}: {subject.name}")
                deadline = began + amounts.over_within_s
                launch = Launch(subject.command, place.environment, place.directory, deadline, _ANSWER_WITHIN_S)
                failures.extend(_measure(launch, subject, number, amounts.counts))
    return _part(subjects, failures)


def _measure(launch: Launch, subject: Subject, number: int, counts: Sequence[int]) -> Iterator[str]:
    """Note the values; what went wrong."""
    try:
        for values in run(launch, counts):
            subject.samples.add(number, values)
    except Failed as failure:
        yield f"{subject.name}: {failure}"


def run(launch: Launch, counts: Sequence[int]) -> Iterator[Values]:
    """One run of a server: the figures at each number of sessions. Raises `Failed`."""
    with Client(launch) as client:
        client.handshake()
        client.settle()
        sessions: list[str] = []
        for count in counts:
            yield _at(client, sessions, count)
        client.end()


def _at(client: Client, sessions: list[str], count: int) -> Values:
    """Open sessions until there are so many, and measure."""
    took = []
    while len(sessions) < count:
        began = time.perf_counter()
        sessions.append(start(client))
        took.append(ms(time.perf_counter() - began))
    client.settle()
    values = {"pss": tree.memory(client.pid).pss, "turns": ms(all_at_once(client, sessions))}
    values["get"] = reads(client, sessions[-1], _READS)["get_p50"]
    if count > 1:  # the first one waits for the host
        values["start"] = percentile(took, 50)
    return {many_key(count, name): value for name, value in values.items()}


def _part(subjects: Sequence[Subject], failures: Sequence[str]) -> Part:
    names = subjects[0].name, subjects[-1].name
    ours, theirs = subjects[0].samples, subjects[1].samples if len(subjects) > 1 else None
    text = sections_as_text(MANY, names, ours, theirs)
    values = {"figures": sections_as_json(MANY, ours, theirs)}
    return Part(MARK, TITLE, text, values=values, failures=failures)


if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["--part", MARK, *sys.argv[1:]]))
