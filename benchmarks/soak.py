"""`python -m benchmarks.soak --minutes N`: does the server's memory grow while it works?

A model that answers at once, five sessions open at any time, one turn after the other; after its twentieth turn a
session is closed and another one takes its place, so that what is open stays the same and whatever grows was kept. The
memory of each process is looked at once a minute. Neither the server nor its host knows of it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import growth, tree
from benchmarks.client import Client, Failed, Launch
from benchmarks.documents import require_marks, say, write_between
from benchmarks.growth import Sample
from benchmarks.rounds import start, turn
from benchmarks.world import world

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OPEN: Final = 5
TURNS_OF_A_SESSION: Final = 20
LOOK_EVERY_S: Final = 60.0
MARK: Final = "soak"
_SERVE: Final = shlex.join((sys.executable, "-m", "pi_session_mcp", "serve"))
_ALLOWANCE_S: Final = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Work for so many minutes, then print the tables. 0 if the server did everything that it was asked."""
    options = _options().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.document is not None:
        require_marks(options.document, [MARK])
    samples: list[Sample] = []
    failed = _soak(options.server, options.minutes, samples)
    warm_up = growth.warm_up_min(options.minutes)
    text = growth.as_text(samples, warm_up)
    print(text, end="")
    if failed:
        say(failed)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(growth.as_json(samples, warm_up), indent=2) + "\n", encoding="utf-8")
    if options.document is not None and not failed:
        write_between(options.document, MARK, f"{_heading(samples, warm_up)}\n\n{text}")
    return 1 if failed else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="how long; 60 unless told")
    parser.add_argument("--server", default=_SERVE, metavar="COMMAND", help="what is measured")
    parser.add_argument(
        "--json", type=Path, default=Path("build/soak.json"), metavar="FILE", help="where every sample goes"
    )
    parser.add_argument("--document", type=Path, metavar="FILE", help="put the tables between its marks, too")
    return parser


def _soak(command: str, minutes: float, samples: list[Sample]) -> str:
    """Add a sample for each minute; what went wrong, or nothing."""
    with world() as place:
        deadline = time.perf_counter() + minutes * 60 + _ALLOWANCE_S
        launch = Launch(tuple(shlex.split(command)), place.environment, place.directory, deadline)
        try:
            with Client(launch) as client:
                client.handshake()
                for sample in _samples(client, minutes * 60):
                    samples.append(sample)
                    say(f"minute {sample.minute:.0f}: {sample.turns} turns, {_megabytes(sample)} MiB of RSS")
                client.end()
        except Failed as failure:
            return str(failure)
    return ""


def _samples(client: Client, seconds: float) -> Iterator[Sample]:
    """Work, and look at the processes every minute until the time is over."""
    began = time.monotonic()
    work = _work(client)
    due_s = LOOK_EVERY_S
    while due_s <= seconds:
        turns, sessions = next(work)
        now_s = time.monotonic() - began
        if now_s >= due_s:
            due_s += LOOK_EVERY_S
            yield Sample(now_s / 60, turns, sessions, _memory(client.pid))


def _work(client: Client) -> Iterator[tuple[int, int]]:
    """Replace the oldest session, give each a few turns, and so on: the turns and sessions there have been.

    It yields when every session is idle and as many are open as at any other time.
    """
    sessions = deque(start(client) for _ in range(OPEN))
    turns, started = 0, OPEN
    while True:
        for session in list(sessions) * (TURNS_OF_A_SESSION // OPEN):
            turn(client, session)
            turns += 1
        yield turns, started
        client.call("pi_session_close", sessionId=sessions.popleft())
        sessions.append(start(client))
        started += 1


def _memory(root: int) -> dict[str, growth.Memory]:
    return {role: tree.memory_of(process) for role, process in tree.by_role(root).items()}


def _megabytes(sample: Sample) -> str:
    everything = sample.of(growth.ALL)
    return "?" if everything is None else f"{everything.rss:.1f}"


def _heading(samples: Sequence[Sample], warm_up: float) -> str:
    last = samples[-1]
    done = (
        f"{last.minute:.0f} minutes, {last.turns} turns, {last.sessions} sessions of which {OPEN} were open at a time"
    )
    return f"{done}; the first {warm_up:.0f} minutes count as warm-up."


if __name__ == "__main__":
    sys.exit(main())
