"""A model endpoint that is slow, stalls, dies or lies: its turn says so in the end, and nobody else notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.config.model import DEFAULT_MAX_SESSIONS
from pi_session_mcp.demo.model import Call, Say, Stall
from tests.support.environment import ensure_installed
from tests.support.model_steps import Drop, Fail, Finish, Lie, Silence, Slow
from tests.support.real import RealWorld, run_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.demo.model import Step
    from tests.process.client import Child

FAILED = {"code": "turn_failed", "message": "Pi turn failed"}
LIMIT_BYTES = 65_536


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWorld]:
    with RealWorld(tmp_path_factory.mktemp("endpoints") / "world", ensure_installed()) as made:
        yield made


@pytest.fixture(scope="module")
def child(world: RealWorld) -> Child:
    return world.serve()


@pytest.fixture(scope="module")
def bystander(world: RealWorld, child: Child) -> str:
    """A session that has nothing to do with what goes on in the others."""
    return world.start_session(child)


@pytest.fixture
def session(world: RealWorld, child: Child) -> Iterator[str]:
    started = world.start_session(child)
    yield started
    assert child.call("pi_session_close", sessionId=started)["session"]["state"] == "closed"


@pytest.mark.parametrize(
    "steps",
    [
        (Lie(),),
        (Fail(401),),
        (Fail(400, "no JSON"),),
        (Finish("content_filter", "half"),),
        (Finish("a reason that nobody knows", "half"),),
        (Call("ls"), Fail(403)),
    ],
    ids=str,
)
def test_a_turn_that_the_endpoint_fails_is_failed_and_the_session_goes_on(
    world: RealWorld, child: Child, session: str, steps: tuple[Step, ...]
) -> None:
    world.model.on("fail this", *steps)
    turn = run_turn(child, session, "fail this")

    assert (turn["state"], turn["error"], "assistantText" in turn) == ("failed", FAILED, False)
    failed = child.call("pi_session_get", sessionId=session)["session"]
    assert (failed["state"], failed["lastError"]) == ("failed", "Pi turn failed")
    assert run_turn(child, session, "hello")["assistantText"] == "ok"
    assert "lastError" not in child.call("pi_session_get", sessionId=session)["session"]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Finish("length", "cut off"), ("cut off", False)),
        (Say(""), ("", False)),
        (Say(" \n in between \t"), ("in between", False)),
        (Say("a\ud800b\x00\u2028\u0085c"), ("a\ufffdb\x00\u2028\u0085c", False)),
        (Say("x" * LIMIT_BYTES), ("x" * LIMIT_BYTES, False)),
        (Say("x" * (LIMIT_BYTES + 1)), ("x" * LIMIT_BYTES, True)),
        (Say("🦉" * 500_000), ("🦉" * (LIMIT_BYTES // 4), True)),
        (Slow("word by word", 3, 0.01), ("word by word", False)),
    ],
    ids=["length", "empty", "blank", "odd", "limit", "beyond", "huge", "slow"],
)
def test_an_answer_arrives_as_valid_text_within_its_limit(
    world: RealWorld, child: Child, session: str, step: Step, expected: tuple[str, bool]
) -> None:
    world.model.on("answer this", step)
    turn = run_turn(child, session, "answer this")

    assert turn["state"] == "completed"
    assert (turn["assistantText"], turn["truncated"]) == expected


def test_a_turn_that_recovers_from_a_dying_endpoint_is_completed(world: RealWorld, child: Child, session: str) -> None:
    world.model.on("die once", Drop(), Say("recovered"))

    assert run_turn(child, session, "die once")["assistantText"] == "recovered"


HOLDING: dict[str, Step] = {
    "silent": Silence(),
    "stalling": Stall(),
    "slow": Slow("x" * 1000, 1000, 0.2),
    "dying again and again": Drop(),
    "failing again and again": Fail(500),
}


@pytest.mark.parametrize("kind", HOLDING)
def test_an_endpoint_that_holds_a_turn_holds_no_other_and_no_abort_and_no_close(
    world: RealWorld, child: Child, bystander: str, kind: str
) -> None:
    session = world.start_session(child)
    world.model.on("hold this", HOLDING[kind])
    for end in ("pi_session_abort", "pi_session_close"):
        requested = len(world.model.requests)
        held = child.call("pi_session_prompt", sessionId=session, prompt="hold this")["turn"]
        assert world.model.wait_until_requested(requested + 1)

        assert run_turn(child, bystander, "hello")["state"] == "completed"
        busy = child.call("pi_session_prompt", sessionId=session, prompt="hello")
        assert busy["error"]["code"] == "session_running"
        assert child.call(end, sessionId=session)["session"]["state"] in {"idle", "closed"}
        assert world.model.wait_until_idle()
        after = child.call("pi_turn_get", sessionId=session, turnId=held["turnId"])
        assert after["turn"]["state"] == "aborted" if end == "pi_session_abort" else not after["ok"]
    assert child.call("pi_session_get", sessionId=session)["error"]["code"] == "unknown_session"


def test_as_many_sessions_as_allowed_run_turns_side_by_side_and_one_more_is_refused(
    world: RealWorld, child: Child
) -> None:
    open_before = len(child.call("pi_session_list")["sessions"])
    sessions = [world.start_session(child) for _ in range(DEFAULT_MAX_SESSIONS - open_before)]
    assert child.call("pi_session_start", workspace="project")["error"]["code"] == "session_limit_reached"

    world.model.on("all together", Call("ls"), Slow("done", 2, 0.2))
    ask = {"prompt": "all together", "waitMs": 50_000}
    asked = [
        child.start_request("tools/call", {"name": "pi_session_prompt", "arguments": {"sessionId": session, **ask}})
        for session in sessions
    ]
    answers = {message["id"]: message for message in (child.receive() for _ in asked)}
    turns = [answers[each]["result"]["structuredContent"]["turn"] for each in asked]
    assert [(turn["sessionId"], turn["assistantText"]) for turn in turns] == [(each, "done") for each in sessions]

    assert child.call("pi_session_close", sessionId=sessions[0])["ok"]
    sessions[0] = world.start_session(child)
    for session in sessions:
        assert child.call("pi_session_close", sessionId=session)["ok"]
