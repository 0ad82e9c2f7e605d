"""Counting what did not belong on stdout. How the descriptors are moved is shown on real processes."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from queue import Queue
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.diagnostics import Diagnostic, Event
from pi_session_mcp.server.process.stdout_guard import StdoutGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 20


def suppressed(byte_count: int, writes: int) -> Diagnostic:
    return Diagnostic(level="warning", event=Event.FOREIGN_STDOUT_SUPPRESSED, bytes=byte_count, writes=writes)


class Guarded:
    """A guard with a pipe of its own."""

    def __init__(self, interval_s: float = DEADLINES.report_interval_s) -> None:
        self.foreign, self.entrance = os.pipe()
        self.said: Queue[Diagnostic] = Queue()
        self.guard = StdoutGuard(self.foreign, self.said.put, interval_s)


@contextmanager
def at_work(interval_s: float) -> Iterator[Guarded]:
    made = Guarded(interval_s)
    made.guard.start()
    yield made
    made.guard.finish()
    made.guard.count(0, 1)  # wakes the thread, which sees the end
    os.close(made.entrance)


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with at_work(DEADLINES.report_interval_s) as made:
        yield made


def test_the_first_write_is_said_at_once(guarded: Guarded) -> None:
    os.write(guarded.entrance, b"x" * 10)

    assert guarded.said.get(timeout=PATIENCE_S) == suppressed(10, 1)


def test_what_comes_within_the_second_is_said_together_by_itself(guarded: Guarded) -> None:
    guarded.guard.count(5, 1)
    assert guarded.said.get(timeout=PATIENCE_S) == suppressed(5, 1)

    guarded.guard.count(7, 1)
    guarded.guard.count(100, 3)
    assert guarded.said.get(timeout=PATIENCE_S) == suppressed(107, 4)


def test_the_rest_is_said_at_the_end() -> None:
    made = Guarded()  # its thread was never started: nothing else reads
    os.write(made.entrance, b"x" * 7)
    made.guard.count(3, 1)
    made.guard.finish()

    assert made.said.get_nowait() == suppressed(10, 2)
    assert made.said.empty()


def test_nothing_suppressed_is_nothing_said() -> None:
    made = Guarded()
    made.guard.finish()

    assert made.said.empty()


def test_a_flood_does_not_block_its_writer_and_is_counted_whole() -> None:
    with at_work(interval_s=0.0) as guarded:
        for _ in range(100):
            os.write(guarded.entrance, b"x" * 50_000)

        total = 0
        while total < 5_000_000:
            total += guarded.said.get(timeout=PATIENCE_S).bytes or 0
    assert total == 5_000_000


def test_an_endless_flood_keeps_neither_counts_nor_the_end_waiting(guarded: Guarded) -> None:
    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            os.write(guarded.entrance, b"x" * 50_000)

    writer = threading.Thread(target=flood, daemon=True)
    writer.start()
    assert guarded.said.get(timeout=PATIENCE_S).bytes
    guarded.guard.count(1, 1)
    guarded.said.get(timeout=PATIENCE_S)
    guarded.guard.finish()
    over.set()
    while writer.is_alive():
        guarded.guard._read_foreign()


def test_a_closed_stdout_costs_nothing_and_counts_go_on() -> None:
    made = Guarded()
    os.close(made.entrance)
    made.guard.start()
    made.guard.count(5, 1)
    assert made.said.get(timeout=PATIENCE_S) == suppressed(5, 1)
    before = time.process_time()
    made.guard.count(6, 1)
    assert made.said.get(timeout=PATIENCE_S) == suppressed(6, 1)  # a second later

    assert time.process_time() - before < 0.5
    made.guard.finish()
    made.guard.count(0, 1)
