"""Diagnostics never block, and never say what somebody else wrote."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.diagnostics import Diagnostic, Event
from pi_session_mcp.server.process.stderr import (
    StderrReporter,
    TransportErrors,
    report_loop_errors,
    silence_foreign_voices,
    silence_logging,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE = Diagnostic(level="error", event=Event.INTERNAL_ERROR, reason="test")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def read_lines(fd: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in os.read(fd, 1 << 20).splitlines()]


def test_a_diagnostic_is_one_line_of_json(pipe: tuple[int, int]) -> None:
    StderrReporter(pipe[1])(LINE)

    assert os.read(pipe[0], 1000) == b'{"level":"error","event":"internal_error","reason":"test"}\n'


def test_a_reader_that_does_not_read_costs_lines_and_the_next_one_says_how_many(pipe: tuple[int, int]) -> None:
    report = StderrReporter(pipe[1])
    for _ in range(5000):
        report(LINE)
    seen = b""
    while len(seen) < 5000 * 20 and b"dropped" not in seen:
        seen += os.read(pipe[0], 1 << 20)
        report(LINE)

    lines = [json.loads(line) for line in seen.splitlines(keepends=True) if line.endswith(b"\n")]
    [with_count] = [line for line in lines if "dropped" in line]
    assert lines.index(with_count) + with_count["dropped"] in {5000, 5001}


def test_a_closed_stderr_is_nothing_to_worry_about() -> None:
    StderrReporter(None)(LINE)


def test_many_threads_report_whole_lines(pipe: tuple[int, int]) -> None:
    report = StderrReporter(pipe[1])

    def report_fifty() -> None:
        for _ in range(50):
            report(LINE)

    threads = [threading.Thread(target=report_fifty) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(read_lines(pipe[0])) == 400


def test_transport_errors_are_said_once_a_second() -> None:
    said: list[Diagnostic] = []
    complain = TransportErrors(said.append)
    for _ in range(1000):
        complain("parse")

    assert said == [Diagnostic(level="warning", event=Event.MCP_TRANSPORT_ERROR, reason="parse")]

    complain._silent_until = time.monotonic() - 0.001
    complain("too_large")
    assert [each.reason for each in said] == ["parse", "too_large"]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)


@pytest.mark.usefixtures("hooks")
def test_exceptions_that_nobody_caught_say_that_they_happened_and_nothing_else() -> None:
    said: list[Diagnostic] = []
    silence_foreign_voices(said.append)

    def crash() -> None:
        raise RuntimeError("secret")

    thread = threading.Thread(target=crash)
    thread.start()
    thread.join()
    sys.excepthook(RuntimeError, RuntimeError("secret"), None)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert [each.reason for each in said] == ["thread", "uncaught"]
    assert not any("secret" in each.to_line() for each in said)


class Unprintable:
    """A log argument that raises when somebody formats it."""

    def __str__(self) -> str:
        raise RuntimeError


def test_what_libraries_log_is_kept_back(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    said: list[Diagnostic] = []
    silence_logging(said.append)

    logging.getLogger("somebody").warning("secret")
    logging.getLogger("somebody").error("secret %s", Unprintable())

    assert [each.reason for each in said] == ["logged"]
    assert capfd.readouterr() == ("", "")


def test_what_the_event_loop_complains_about_is_kept_back() -> None:
    said: list[Diagnostic] = []

    report_loop_errors(said.append)(None, {"message": "secret", "exception": RuntimeError("secret")})

    assert [each.reason for each in said] == ["loop"]
