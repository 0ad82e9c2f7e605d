"""How `serve` ends: by which status, how soon, and that it does."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.process.conftest import TRIVIAL

if TYPE_CHECKING:
    from tests.process.client import Child
    from tests.process.conftest import Start

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture(params=["while-loading", "loaded"])
def child(request: pytest.FixtureRequest, start: Start) -> Child:
    """A server after its handshake, before or after the SDK has taken over."""
    started = start(command=TRIVIAL, FAULT="slow-loading" if request.param == "while-loading" else "")
    started.initialize()
    if request.param == "loaded":
        started.call("pi_session_list")
    return started


@pytest.mark.parametrize("number", STATUS)
def test_a_signal_ends_the_server_with_its_status(child: Child, number: signal.Signals) -> None:
    child.signal(number)

    assert child.wait() == STATUS[number]
    assert child.stderr == b""


def test_a_signal_at_any_moment_of_the_start_ends_the_server_silently(start: Start) -> None:
    for delay_ms in range(0, 120, 6):
        child = start(command=TRIVIAL)
        select.select([], [], [], delay_ms / 1000)
        child.signal(signal.SIGTERM)

        assert child.wait() in {143, -signal.SIGTERM}  # the latter before Python runs any of our code
        assert child.stderr == b""


def test_the_end_of_input_ends_the_server_with_success(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.call("pi_session_list")
    child.close_stdin()

    assert child.wait() == 0
    assert child.stderr == b""


@pytest.mark.parametrize(("first", "second"), [(signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)])
def test_the_first_signal_sets_the_status(start: Start, first: signal.Signals, second: signal.Signals) -> None:
    child = start(command=TRIVIAL, FAULT="await-in-shutdown")
    child.initialize()
    child.call("pi_session_list")
    waiting = child.start_request("tools/call", {"name": "pi_session_list", "arguments": {"do": "wait"}})
    child.signal(first)
    child.answer_to(waiting)  # so the first has been seen

    assert child.signal_until_it_ends(second) == STATUS[first]


@pytest.mark.parametrize("number", STATUS)
def test_a_second_signal_of_the_same_kind_ends_the_server_at_once(start: Start, number: signal.Signals) -> None:
    child = start(command=TRIVIAL, FAULT="await-in-shutdown")
    child.initialize()
    child.call("pi_session_list")
    waiting = child.start_request("tools/call", {"name": "pi_session_list", "arguments": {"do": "wait"}})
    child.signal(number)
    child.answer_to(waiting)
    child.signal(number)

    assert child.wait() == STATUS[number]


def test_input_that_ended_first_sets_the_status(start: Start) -> None:
    child = start(command=TRIVIAL, FAULT="await-in-shutdown")
    child.initialize()
    child.call("pi_session_list")
    waiting = child.start_request("tools/call", {"name": "pi_session_list", "arguments": {"do": "wait"}})
    child.close_stdin()
    child.answer_to(waiting)

    assert child.signal_until_it_ends(signal.SIGTERM) == 0


def test_a_shutdown_that_hangs_is_ended_by_the_watchdog(start: Start) -> None:
    child = start(command=TRIVIAL, FAULT="hang-in-shutdown", SHUTDOWN_S="0.5")
    child.initialize()
    child.call("pi_session_list")
    child.signal(signal.SIGTERM)

    assert child.wait() == 143


def test_a_shutdown_that_fails_says_so_and_ends_with_the_status(start: Start) -> None:
    child = start(command=TRIVIAL, FAULT="crash-while-closing")
    child.initialize()
    child.call("pi_session_list")
    child.signal(signal.SIGTERM)

    assert child.wait() == 143
    assert child.diagnostics == [{"level": "error", "event": "shutdown_failed", "code": "internal_error"}]


def test_calls_in_flight_are_answered_when_their_sessions_end(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    waiting = child.start_request("tools/call", {"name": "pi_session_list", "arguments": {"do": "wait"}})
    child.call("pi_session_list")  # everything is loaded when it is answered, and the call before it is under way
    child.signal(signal.SIGTERM)

    assert child.answer_to(waiting)["result"]["structuredContent"] == {}
    assert child.wait() == 143


def test_calls_that_wait_for_the_loading_are_answered_after_the_input_has_ended(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    waiting = child.start_request("tools/call", {"name": "pi_session_list", "arguments": {"do": "echo", "text": "x"}})
    child.close_stdin()

    assert child.answer_to(waiting)["result"]["structuredContent"] == {"echo": "x"}
    assert child.wait() == 0


def test_an_output_that_nobody_reads_any_more_is_a_clean_end(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.call("pi_session_list")
    assert child.process.stdout is not None
    child.process.stdout.close()
    child.start_request("ping")

    assert child.wait() == 0
    assert child.stderr == b""


def test_a_client_that_never_reads_does_not_keep_the_server_from_ending(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    for _ in range(30):
        child.start_request("tools/call", {"name": "pi_session_list", "arguments": {"do": "big", "size": 1_000_000}})
    child.close_stdin()

    assert child.wait() == 0


def test_a_busy_event_loop_does_not_keep_a_second_signal_waiting(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.call("pi_session_list")
    child.start_request("tools/call", {"name": "pi_session_list", "arguments": {"do": "busy", "seconds": 3600}})
    process = psutil.Process(child.process.pid)
    child.signal(signal.SIGINT)
    while process.status() == psutil.STATUS_RUNNING:
        pass
    child.signal(signal.SIGINT)

    assert child.wait() == 130


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_a_server_that_is_started_without_standard_descriptors_ends_cleanly(
    server_environment: dict[str, str], closed: tuple[int, ...]
) -> None:
    from tests.process.client import SERVE

    def close() -> None:
        for fd in closed:
            os.close(fd)

    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ended = subprocess.run(
        SERVE, env=server_environment, preexec_fn=close, input=ping, capture_output=True, check=False, timeout=60
    )

    assert ended.returncode == 0
    assert ended.stderr == b""
    if 0 not in closed and 1 not in closed:
        assert ended.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    else:
        assert ended.stdout == b""
