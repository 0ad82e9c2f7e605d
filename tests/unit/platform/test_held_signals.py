"""Signals that come while a process is being started or ended wait until its owner knows it."""

from __future__ import annotations

import signal
import threading

import pytest

from pi_session_mcp.platform.brief_run import signals_held_back


def test_an_interrupt_waits_until_the_block_is_left() -> None:
    finished = []

    def work() -> None:
        with signals_held_back():
            signal.raise_signal(signal.SIGINT)
            finished.append("block")

    with pytest.raises(KeyboardInterrupt):
        work()

    assert finished == ["block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_usual_handler_hears_of_it_once() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        with signals_held_back():
            signal.raise_signal(signal.SIGTERM)
            assert heard == []
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("usual", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_no_function_handles_is_left_alone(usual: signal.Handlers) -> None:
    before = signal.signal(signal.SIGTERM, usual)
    try:
        with signals_held_back():
            assert signal.getsignal(signal.SIGTERM) is usual
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_may_use_it() -> None:
    entered = []

    def enter() -> None:
        with signals_held_back():
            entered.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert entered == [True]
