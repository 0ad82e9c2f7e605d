"""Each way in which a session with an extension ends, and that it is shut down once."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.extended.asking import close, start, text_of
from tests.support.trees import kill_all, survivors

if TYPE_CHECKING:
    from tests.support.extensions import Recorded
    from tests.support.shared_server import SharedServer

# --- each ending -----------------------------------------------------------------------------------------------------


def end_input(child: Recorded) -> None:
    child.close_stdin()
    frames = child.frames + child.rest()
    assert child.wait() == 0
    assert_all_are_frames(frames)


def assert_all_are_frames(frames: list[Any]) -> None:
    """No line of a server's standard output was an extension's."""
    assert frames
    assert all(frame["jsonrpc"] == "2.0" and frame.get("method") != "forged" for frame in frames)


def terminate(child: Recorded) -> None:
    child.signal(signal.SIGTERM)
    assert child.wait() == 128 + signal.SIGTERM


def interrupt(child: Recorded) -> None:
    child.signal(signal.SIGINT)
    assert child.wait() == 128 + signal.SIGINT


def kill(child: Recorded) -> None:
    child.signal(signal.SIGKILL)
    child.wait()


@pytest.mark.parametrize(
    ("end", "state"),
    [
        *((end, "running") for end in (end_input, interrupt, kill)),
        pytest.param(terminate, "running", marks=pytest.mark.matrix),
        *(pytest.param(end, "idle", marks=pytest.mark.matrix) for end in (terminate, interrupt, kill)),
    ],
)
def test_the_servers_end_shuts_each_session_down_once_and_leaves_nothing(
    shared: SharedServer, end: Any, state: str
) -> None:
    extension = shared.extension
    extension.behave(startsDaemon=True)
    child = shared.world.serve()
    session = shared.world.start_session(child)
    if state == "running":
        assert child.call("pi_session_prompt", sessionId=session, prompt="stay")["ok"]
    processes = extension.processes()
    assert len(processes) == (3 if state == "idle" else 4)  # the host and its stubborn children

    end(child)

    try:
        assert survivors(processes) == []
    finally:
        kill_all(processes)
    assert extension.counts() == (1, 1)


def test_the_end_of_input_ends_an_idle_session_of_whose_noise_no_line_is_the_servers(shared: SharedServer) -> None:
    extension, child = shared.extension, shared.world.serve()
    extension.behave(startsDaemon=True)
    session = shared.world.start_session(child)
    for _ in range(5):
        text_of(child, session, "hello")
    processes = extension.processes()
    assert len(processes) == 8  # the host, and a stubborn child for each time that it is loud

    end_input(child)

    try:
        assert survivors(processes) == []
    finally:
        kill_all(processes)
    assert extension.counts() == (1, 1)
    suppressed = child.diagnostics_of("foreign_stdout_suppressed")
    assert sum(said["bytes"] for said in suppressed) > 7 * len("fixture noise\n") * 3
    assert sum(said["writes"] for said in suppressed) >= 1
    assert b"fixture noise" not in child.stderr


def test_a_start_that_is_cancelled_is_disposed_of_when_it_arrives(shared: SharedServer) -> None:
    extension, child = shared.extension, shared.child
    extension.behave(waiting="session_start")
    request = child.start_request("tools/call", {"name": "pi_session_start", "arguments": {"workspace": "project"}})
    extension.wait_for("session_start")

    child.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}})
    extension.go_on()

    extension.wait_for("session_shutdown")
    assert survivors(extension.processes()) == []
    assert child.call("pi_session_list")["sessions"] == []
    assert extension.counts() == (1, 1)


def test_shutdown_that_overtakes_a_start_disposes_of_it_and_of_a_running_session(shared: SharedServer) -> None:
    extension, child = shared.extension, shared.world.serve()
    extension.behave(startsDaemon=True)
    session = shared.world.start_session(child)
    assert child.call("pi_session_prompt", sessionId=session, prompt="stay")["ok"]
    extension.behave(waiting="session_start")
    child.start_request("tools/call", {"name": "pi_session_start", "arguments": {"workspace": "project"}})
    extension.wait_for("session_start", 2)
    processes = extension.processes()
    assert len(processes) == 5  # two hosts, and the stubborn children of the running one

    child.signal(signal.SIGTERM)
    extension.go_on()

    try:
        assert child.wait() == 128 + signal.SIGTERM
        assert survivors(processes) == []
    finally:
        kill_all(processes)
    assert extension.counts() == (2, 2)


@pytest.mark.parametrize(
    ("behaviour", "profile", "code", "counts"),
    [
        ({"throwing": "session_start"}, "reader", "extension_load_failed", (1, 1)),
        ({}, "thinker", "thinking_level_unavailable", (0, 1)),
    ],
)
def test_a_failure_after_opening_shuts_the_session_down_once(
    shared: SharedServer, behaviour: dict[str, str], profile: str, code: str, counts: tuple[int, int]
) -> None:
    extension = shared.extension
    extension.behave(**behaviour)

    refused = shared.child.call("pi_session_start", workspace="project", executionProfile=profile)

    assert refused["error"]["code"] == code
    assert survivors(extension.processes()) == []
    assert extension.counts() == counts


def test_a_shutdown_hook_that_hangs_does_not_keep_the_session_or_its_host(shared: SharedServer) -> None:
    session = start(shared, hanging="session_shutdown")

    close(shared.child, session)

    assert survivors(shared.extension.processes()) == []
    assert shared.extension.counts() == (1, 1)


def test_input_hooks_that_keep_prompts_are_ended_with_their_hosts(shared: SharedServer) -> None:
    child = shared.child
    sessions = [start(shared, **{misbehaviour: "input"}) for misbehaviour in ("hanging", "blocking")]
    prompts = [
        child.start_request("tools/call", {"name": "pi_session_prompt", "arguments": {"sessionId": one, "prompt": "x"}})
        for one in sessions
    ]

    answers = answers_to(child, prompts)

    codes = {answers[prompt]["error"]["code"] for prompt in prompts}
    assert codes <= {"prompt_timeout", "pi_runtime_unavailable"}
    assert survivors(shared.extension.processes()) == []
    for session in sessions:
        assert child.call("pi_session_get", sessionId=session)["session"]["lastError"] == "Pi host ended"
    assert text_of(child, start(shared), "hello") == "you said: hello (1)"


def answers_to(child: Recorded, requests: list[int]) -> dict[int, Any]:
    """The structured results, in whatever order they come."""
    answers: dict[int, Any] = {}
    while len(answers) < len(requests):
        frame = child.receive()
        if frame.get("id") in requests:
            answers[frame["id"]] = frame["result"]["structuredContent"]
    return answers


def test_an_abort_that_does_not_settle_ends_the_host_and_aborts_the_turn(shared: SharedServer) -> None:
    extension, child = shared.extension, shared.child
    session = start(shared, startsDaemon=True)
    turn = child.call("pi_session_prompt", sessionId=session, prompt="cling")["turn"]
    processes = extension.processes()

    assert child.call("pi_session_abort", sessionId=session)["error"]["code"] == "abort_timeout"

    ended = child.call("pi_turn_get", sessionId=session, turnId=turn["turnId"], waitMs=30_000)["turn"]
    assert ended["state"] == "aborted"
    assert child.call("pi_session_get", sessionId=session)["session"]["lastError"] == "Pi host ended"
    assert survivors(processes) == []
    assert len(extension.notes("session_shutdown")) <= 1
