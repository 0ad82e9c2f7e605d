"""Waiting for a turn over the real thing, in both eras of the protocol: progress, cancellation, limits and ends."""

from __future__ import annotations

import os
import random
import signal
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pi_session_mcp.demo.model import Call, Stall
from tests.process.client import ENVELOPE
from tests.support.environment import ensure_installed
from tests.support.model_steps import Slow
from tests.support.real import RealWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.process.client import Child

MAX_SESSIONS = 4
LONGEST_MS = 50_000
LONGEST_PROMPT = 100_000


@dataclass
class Client:
    """A client of one era, and the sessions that it has started."""

    world: RealWorld
    child: Child
    meta: dict[str, Any]
    started: list[str] = field(default_factory=list)

    def begin(self, tool: str, token: object = None, **arguments: Any) -> int:
        """Call a tool and return the request's id."""
        meta = self.meta if token is None else {**self.meta, "progressToken": token}
        params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        return self.child.start_request("tools/call", params)

    def end(self, request: int) -> Any:
        """The result of a call."""
        return self.child.answer_to(request)["result"]["structuredContent"]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.end(self.begin(tool, **arguments))

    def cancel(self, request: int) -> None:
        params = {"requestId": request, **({"_meta": self.meta} if self.meta else {})}
        self.child.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def start_session(self) -> str:
        answer = self.call("pi_session_start", workspace="project")
        assert answer["ok"], answer
        self.started.append(str(answer["session"]["id"]))
        return self.started[-1]

    def start_turn(self, session: str, prompt: str) -> str:
        """The id of a turn that runs."""
        answer = self.call("pi_session_prompt", sessionId=session, prompt=prompt)
        assert answer["turn"]["state"] == "running", answer
        return str(answer["turn"]["turnId"])


@pytest.fixture(scope="module", params=["with a handshake", "without"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server for each era."""
    with RealWorld(tmp_path_factory.mktemp("waiting") / "world", ensure_installed()) as world:
        world.configure(limits={"maxSessions": MAX_SESSIONS})
        world.model.on("for ever", Stall())
        handshake = request.param == "with a handshake"
        child = world.serve() if handshake else world.start_server()
        yield Client(world, child, {} if handshake else dict(ENVELOPE))


@pytest.fixture
def client(opened: Client) -> Iterator[Client]:
    yield opened
    while opened.started:
        opened.call("pi_session_close", sessionId=opened.started.pop())


def test_a_whole_delegation_takes_four_calls(client: Client) -> None:
    profile = client.call("pi_capabilities_get")["executionProfiles"][1]["alias"]
    started = client.call("pi_session_start", workspace="project", executionProfile=profile)["session"]["id"]
    answer = client.call("pi_session_prompt", sessionId=started, prompt="hello", waitMs=LONGEST_MS)

    assert (answer["turn"]["state"], answer["turn"]["assistantText"]) == ("completed", "ok")
    assert (answer["session"]["state"], answer["session"]["latestTurnId"]) == ("idle", answer["turn"]["turnId"])
    assert client.call("pi_session_close", sessionId=started)["session"]["state"] == "closed"


def test_progress_is_told_with_a_token_and_rises(client: Client) -> None:
    client.world.model.on("work", Call("ls"), Slow("at work", 5, 0.5))
    session = client.start_session()
    request = client.begin("pi_session_prompt", "a token", sessionId=session, prompt="work", waitMs=LONGEST_MS)
    told = []
    while (message := client.child.receive()).get("id") != request:
        assert message["method"] == "notifications/progress"
        told.append(message["params"])

    assert message["result"]["structuredContent"]["turn"]["assistantText"] == "at work"
    assert {(each["progressToken"], each["message"]) for each in told} == {("a token", "running")}
    counters = [each["progress"] for each in told]
    assert counters == sorted(set(counters))


def test_running_out_of_time_is_no_error_and_the_turn_goes_on(client: Client) -> None:
    session = client.start_session()
    answer = client.call("pi_session_prompt", sessionId=session, prompt="for ever", waitMs=50.0)
    again = client.call("pi_turn_get", sessionId=session, turnId=answer["turn"]["turnId"], waitMs=50)

    assert [one["turn"]["state"] for one in (answer, again)] == ["running", "running"]
    assert answer["session"]["state"] == "running"


def test_a_cancelled_waiter_is_not_answered_and_the_turn_and_the_others_go_on(client: Client) -> None:
    session = client.start_session()
    turn = client.start_turn(session, "for ever")
    cancelled, other = (
        client.begin("pi_turn_get", number, sessionId=session, turnId=turn, waitMs=LONGEST_MS) for number in (1, 2)
    )
    client.cancel(cancelled)
    assert client.call("pi_turn_get", sessionId=session, turnId=turn)["turn"]["state"] == "running"

    abort = client.begin("pi_session_abort", sessionId=session)
    answers: dict[int, Any] = {}
    while len(answers) < 2:
        message = client.child.receive()
        answers.update({message["id"]: message["result"]["structuredContent"]} if "id" in message else {})
    assert answers.keys() == {other, abort}
    assert answers[other]["turn"]["state"] == "aborted"
    assert answers[abort]["session"]["state"] == "idle"


def test_closing_the_session_ends_its_waiters(client: Client) -> None:
    session = client.start_session()
    waiting = client.begin("pi_session_prompt", sessionId=session, prompt="for ever", waitMs=LONGEST_MS)
    while client.call("pi_session_get", sessionId=session)["session"].get("latestTurnId") is None:
        pass
    closing = client.begin("pi_session_close", sessionId=session)
    answers: dict[int, Any] = {}
    while len(answers) < 2:
        message = client.child.receive()
        answers[message["id"]] = message["result"]["structuredContent"]

    assert answers[waiting]["error"]["code"] == "unknown_session"
    assert answers[closing]["session"]["state"] == "closed"
    assert client.call("pi_session_close", sessionId=session) == answers[closing]


def test_a_waiter_gets_its_own_turn_whatever_has_begun_since(client: Client) -> None:
    session = client.start_session()
    first = client.call("pi_session_prompt", sessionId=session, prompt="hello", waitMs=LONGEST_MS)["turn"]
    client.start_turn(session, "for ever")

    assert client.call("pi_turn_get", sessionId=session, turnId=first["turnId"], waitMs=LONGEST_MS)["turn"] == first
    unknown = client.call("pi_turn_get", sessionId=session, turnId=session, waitMs=LONGEST_MS)
    assert unknown["error"]["code"] == "unknown_turn"
    busy = client.call("pi_session_prompt", sessionId=session, prompt="hello", waitMs=LONGEST_MS)
    assert busy["error"]["code"] == "session_running"


@pytest.mark.parametrize("character", ["a", "🦉"])
def test_a_prompt_of_the_longest_length_arrives_whole_and_one_more_is_refused(client: Client, character: str) -> None:
    session = client.start_session()
    prompt = character * LONGEST_PROMPT
    assert client.call("pi_session_prompt", sessionId=session, prompt=prompt, waitMs=LONGEST_MS)["ok"]
    assert prompt in str(client.world.model.requests[-1]["messages"][-1]["content"])

    refused = client.call("pi_session_prompt", sessionId=session, prompt=prompt + character)
    assert refused["error"]["code"] == "invalid_arguments"


def test_half_a_surrogate_pair_in_a_prompt_arrives_as_a_replacement_character(client: Client) -> None:
    answer = client.call("pi_session_prompt", sessionId=client.start_session(), prompt="cut \ud83d", waitMs=LONGEST_MS)

    assert answer["turn"]["state"] == "completed"
    assert "cut \ufffd" in str(client.world.model.requests[-1]["messages"][-1]["content"])


@pytest.mark.parametrize("wait_ms", [-1, LONGEST_MS + 1, True, 5.5, "5", None])
def test_a_wait_that_is_no_number_of_milliseconds_within_its_limits_is_refused(client: Client, wait_ms: object) -> None:
    session = client.start_session()
    refused = client.call("pi_session_prompt", sessionId=session, prompt="hello", waitMs=wait_ms)

    assert refused["error"]["code"] == "invalid_arguments"
    assert "latestTurnId" not in client.call("pi_session_get", sessionId=session)["session"]


def test_starts_cancelled_at_any_moment_leave_no_session_and_give_their_places_back(client: Client) -> None:
    moments = random.Random(7)  # any moments will do, the same ones each time
    answered = set()
    for _ in range(30):
        request = client.begin("pi_session_start", workspace="project")
        threading.Event().wait(moments.random() * 0.03)
        client.cancel(request)
    asked = client.begin("pi_session_list")
    while (message := client.child.receive())["id"] != asked:
        answered.add(message["result"]["structuredContent"].get("session", {}).get("id"))
    listed = {session["id"] for session in message["result"]["structuredContent"]["sessions"]}
    assert listed == answered - {None}

    client.started += listed
    while client.started:
        client.call("pi_session_close", sessionId=client.started.pop())
    while client.call("pi_session_list")["sessions"]:
        pass
    places = 0
    while places < MAX_SESSIONS:  # those of cancelled starts come back when what arrived for them is gone
        answer = client.call("pi_session_start", workspace="project")
        if answer["ok"]:
            places += 1
            client.started.append(answer["session"]["id"])
        else:
            assert answer["error"]["code"] == "session_limit_reached"
    assert client.call("pi_session_start", workspace="project")["error"]["code"] == "session_limit_reached"


def test_prompts_cancelled_at_any_moment_leave_the_session_usable(client: Client) -> None:
    moments = random.Random(11)  # any moments will do, the same ones each time
    session = client.start_session()
    for _ in range(30):
        request = client.begin("pi_session_prompt", sessionId=session, prompt="for ever", waitMs=LONGEST_MS)
        threading.Event().wait(moments.random() * 0.01)
        client.cancel(request)
        client.call("pi_session_abort", sessionId=session)
        while client.call("pi_session_get", sessionId=session)["session"]["state"] == "running":
            pass
    answer = client.call("pi_session_prompt", sessionId=session, prompt="hello", waitMs=LONGEST_MS)
    assert answer["turn"]["state"] == "completed"
    assert client.world.model.wait_until_idle()


def test_a_waiter_hears_at_once_that_the_host_was_killed_and_the_next_session_gets_a_new_one(client: Client) -> None:
    session, idle = client.start_session(), client.start_session()
    waiting = client.begin("pi_session_prompt", sessionId=session, prompt="for ever", waitMs=LONGEST_MS)
    while client.call("pi_session_get", sessionId=session)["session"].get("latestTurnId") is None:
        pass
    os.kill(host_of(client.child), signal.SIGKILL)

    answer = client.end(waiting)
    assert answer["turn"]["error"] == {"code": "turn_failed", "message": "Pi turn failed"}
    for each in (session, idle):
        lost = client.call("pi_session_get", sessionId=each)["session"]
        assert (lost["state"], lost["lastError"]) == ("failed", "Pi host ended")
        prompted = client.call("pi_session_prompt", sessionId=each, prompt="hello")
        assert prompted["error"]["code"] == "pi_runtime_unavailable"
        assert client.call("pi_session_close", sessionId=each)["session"]["state"] == "closed"
    fresh = client.call("pi_session_prompt", sessionId=client.start_session(), prompt="hello", waitMs=LONGEST_MS)
    assert fresh["turn"]["state"] == "completed"


def host_of(child: Child) -> int:
    """The one Pi host of a server."""
    below = psutil.Process(child.process.pid).children(recursive=True)
    (host,) = [
        process.pid for process in below if "host.mjs" in process.cmdline()[-1] and "-I" not in process.cmdline()
    ]
    return host


@pytest.mark.parametrize("opened", ["with a handshake"], indirect=True)
def test_stopping_the_server_ends_waiters_and_its_sessions_are_unknown_to_the_next(client: Client) -> None:
    session = client.start_session()
    server = client.world.start_server()
    server.initialize()
    other = client.world.start_session(server)
    waiting = server.start_request(
        "tools/call",
        {"name": "pi_session_prompt", "arguments": {"sessionId": other, "prompt": "for ever", "waitMs": LONGEST_MS}},
    )
    while server.call("pi_session_get", sessionId=other)["session"].get("latestTurnId") is None:
        pass
    server.signal(signal.SIGTERM)

    assert server.answer_to(waiting)["result"]["structuredContent"]["error"]["code"] == "server_stopping"
    assert server.wait() == 143
    unknown = client.call("pi_session_get", sessionId=other)["error"]
    assert unknown == {"code": "unknown_session", "message": "Unknown session (sessions end with the server process)"}
    assert client.call("pi_session_get", sessionId=session)["session"]["state"] == "idle"
