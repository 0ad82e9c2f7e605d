"""stdout carries MCP frames, all of it, always."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.process.conftest import TRIVIAL

if TYPE_CHECKING:
    from tests.process.conftest import Start


def test_whatever_prints_the_stream_stays_clean_and_the_count_is_said(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.call("pi_session_list", do="print")
    child.call("pi_session_list", do="count")
    child.close_stdin()

    assert child.rest() == []
    assert child.wait() == 0
    said = [line for line in child.diagnostics if line["event"] == "foreign_stdout_suppressed"]
    assert sum(line["bytes"] for line in said) == 3 * len("canary-text-of-a-stranger") + 1000
    assert 4 <= sum(line["writes"] for line in said) <= 6
    assert len(said) <= 3
    assert b"canary" not in child.stderr


def test_what_is_printed_while_loading_is_suppressed(start: Start) -> None:
    child = start(command=TRIVIAL, FAULT="print-while-loading")
    child.initialize()
    child.call("pi_session_list")
    child.close_stdin()

    assert child.rest() == []
    child.wait()
    assert child.diagnostics == [{"level": "warning", "event": "foreign_stdout_suppressed", "bytes": 26, "writes": 1}]


def test_logs_warnings_and_stderr_of_libraries_are_kept_back(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.call("pi_session_list", do="log")
    child.close_stdin()
    child.wait()

    assert [line["event"] for line in child.diagnostics] == ["internal_error"]
    assert b"canary" not in child.stderr


def test_a_child_finds_nothing_on_its_descriptors_that_is_the_clients(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    found = child.call("pi_session_list", do="descriptors")["inherited"]
    read, count = ast.literal_eval(found)
    assert read == b""
    assert count == 4  # the three, and the one that lists them


def test_a_stderr_that_nobody_reads_does_not_block_the_server(start: Start) -> None:
    child = start(command=TRIVIAL, popen={"hears_stderr": False})
    child.initialize()
    for _ in range(1200):  # 90 kB of diagnostics, more than a pipe holds
        child.call("pi_session_list", do="log")

    assert child.request("ping")["result"] == {}
