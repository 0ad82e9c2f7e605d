"""Aborting a turn, ending a session, ending a host: at every phase, and nothing goes on."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_session_mcp.demo.model import Call, Say, Stall, Step
from tests.support.model_steps import Fail, Silence, Slow
from tests.support.raw_host import CODING, WAIT_S, RawHost, Refused
from tests.support.trees import kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from pi_session_mcp.runtime.locate import Runtime
    from tests.contract.host.extensions import Extension
    from tests.support.raw_host import RawSession

DEAF = """
trap '' TERM HUP INT
(trap '' TERM HUP INT; while :; do sleep 1000; done) & echo $! > deaf
sleep 1000 & echo $! > background
echo $$ > shell
echo ready > ready
while :; do sleep 1000; done
"""
LOCKING = """
const {{ createRequire }} = await import("node:module");
const lockfile = createRequire({sdk})("proper-lockfile");
for (const file of {files}) void (async () => {{
  for (let count = 0; count < 10; count++) await (await lockfile.lock(file))();
}})();
"""
"""Takes and gives back locks with the SDK's own library, in the background as the SDK does; enough of them that an exit
at any moment meets one that is being made or removed."""
EXIT_PROTOCOL = 3
NOTES = ("deaf", "background", "shell")


@contextmanager
def running_bash(session: RawSession, model: ScriptedModel, workspace: Path) -> Iterator[list[psutil.Process]]:
    """A turn whose bash command ignores every polite signal; its processes."""
    os.mkfifo(workspace / "ready")
    model.on("run it", Call("bash", {"command": DEAF}), Say("over"))
    session.start("run it")
    # Blocks until the command has written, so that nothing has to be guessed.
    assert (workspace / "ready").read_text() == "ready\n"
    processes = [psutil.Process(int((workspace / note).read_text())) for note in NOTES]
    try:
        yield processes
    finally:
        kill_all(processes)


def test_an_abort_without_a_turn_does_nothing(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace).opened()

    assert session.ask("abort") == {}
    assert session.say("hello") == "ok"


def test_an_abort_in_the_same_breath_as_the_prompt_is_latched(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    model.on("go", Slow("too late", chunks=2, gap_s=5))
    session = host.session(workspace).opened()

    with host.together():
        prompt = session.send("prompt", turn=1, text="go")
        abort = session.send("abort")

    assert host.answer(prompt) == {"preflight": "started"}
    assert host.answer(abort) == {}
    assert session.settled(1)["aborted"] is True
    assert session.settled(1)["text"] != "too late"


def test_an_abort_right_after_the_preflight(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("go", Stall())
    session = host.session(workspace).opened()

    turn = session.start("go")
    session.ask("abort")

    assert (session.settled(turn)["stopReason"], session.settled(turn)["aborted"]) == ("aborted", True)


@pytest.mark.parametrize("step", [Stall(), Silence()], ids=["headers sent", "no answer"])
def test_an_abort_while_the_model_is_awaited(host: RawHost, model: ScriptedModel, workspace: Path, step: Step) -> None:
    model.on("go", step)
    session = host.session(workspace).opened()
    turn = session.start("go")
    assert model.wait_until_requested(1)

    session.ask("abort")

    assert (session.settled(turn)["stopReason"], session.settled(turn)["aborted"]) == ("aborted", True)
    assert model.wait_until_idle()


def test_an_abort_in_the_middle_of_an_answer(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("go", Slow("word " * 100, chunks=100, gap_s=0.2))
    session = host.session(workspace).opened()
    turn = session.start("go")
    assert model.wait_until_requested(1)

    session.ask("abort")

    assert (session.settled(turn)["stopReason"], session.settled(turn)["aborted"]) == ("aborted", True)
    assert model.wait_until_idle()


def test_an_abort_while_pi_waits_to_retry(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("go", Fail(503))
    session = host.session(workspace).opened()
    turn = session.start("go")
    host.event("activity", session=session.key, turn=turn)

    session.ask("abort")

    assert session.settled(turn)["aborted"] is True


def test_an_abort_ends_a_command_and_what_it_started(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    session = host.session(workspace, tools=CODING).opened()

    with running_bash(session, model, workspace) as processes:
        session.ask("abort")

        assert session.settled(1)["aborted"] is True
        assert survivors(processes) == []


def test_concurrent_aborts_are_all_answered(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("go", Stall())
    session = host.session(workspace).opened()
    session.start("go")

    with host.together():
        aborts = [session.send("abort") for _ in range(5)]

    assert [host.answer(abort) for abort in aborts] == [{}] * 5


def test_a_session_goes_on_after_an_abort(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("go", Stall())
    session = host.session(workspace).opened()
    session.start("go")
    session.ask("abort")

    assert session.say("and now?") == "ok"


def test_a_disposed_session_is_unknown(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace).opened()
    session.ask("dispose")

    for op, members in [("prompt", {"turn": 1, "text": "x"}), ("abort", {}), ("bind", {})]:
        with pytest.raises(Refused, match="unknown_session"):
            session.ask(op, **members)


def test_disposing_of_a_session_that_never_was_or_is_gone_is_fine(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace)
    assert session.ask("dispose") == {}
    session.opened()

    assert [session.ask("dispose"), session.ask("dispose")] == [{}, {}]


def test_concurrent_disposals_are_all_answered(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace).opened()

    with host.together():
        disposals = [session.send("dispose") for _ in range(3)]

    assert [host.answer(disposal) for disposal in disposals] == [{}] * 3


def test_dispose_wins_over_what_is_under_way(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace)
    with host.together():
        load = session.send("load", cwd=str(workspace), fileAccess="user", entries=[])
        dispose = session.send("dispose")

    with pytest.raises(Refused, match="failed"):
        host.answer(load)
    assert host.answer(dispose) == {}
    with pytest.raises(Refused, match="unknown_session"):
        session.check("provider")


def test_dispose_wins_over_an_opening(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    session = host.session(workspace)
    session.load()
    with host.together():
        opening = session.send("open", selection=session.selection, tools=["read"])
        dispose = session.send("dispose")

    with pytest.raises(Refused, match="failed"):
        host.answer(opening)
    assert host.answer(dispose) == {}
    with pytest.raises(Refused, match="unknown_session"):
        session.ask("prompt", turn=1, text="x")


def test_dispose_in_the_middle_of_a_turn_is_silent(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("go", Stall())
    session = host.session(workspace).opened()
    session.start("go")
    assert model.wait_until_requested(1)

    assert session.ask("dispose") == {}

    assert model.wait_until_idle()
    assert host.ask("ping") == {}
    assert [event for event in host.events if event["session"] == session.key] == []


def test_a_prompt_that_dispose_overtakes_sends_no_request(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    session = host.session(workspace).opened()

    with host.together():
        prompt = session.send("prompt", turn=1, text="go")
        dispose = session.send("dispose")

    with pytest.raises(Refused, match="failed"):
        host.answer(prompt)
    assert host.answer(dispose) == {}
    # A later session's request arrives, and the overtaken one is not before it.
    host.session(workspace).opened().say("another")
    assert len(model.requests) == 1


def test_dispose_ends_a_command_and_what_it_started(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    session = host.session(workspace, tools=CODING).opened()

    with running_bash(session, model, workspace) as processes:
        assert session.ask("dispose") == {}

        assert survivors(processes) == []


def test_dispose_does_not_disturb_other_sessions(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("slowly", Slow("still here", chunks=5, gap_s=0.1))
    staying, leaving = host.session(workspace).opened(), host.session(workspace).opened()
    turn = staying.start("slowly")

    leaving.ask("dispose")

    assert staying.settled(turn)["text"] == "still here"


def test_the_end_of_the_channel_ends_the_host_and_its_commands(
    own_host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    session = own_host.session(workspace, tools=CODING).opened()

    with running_bash(session, model, workspace) as processes:
        own_host.close_channel()

        assert own_host.process.wait(WAIT_S) == 0
        assert survivors(processes) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_host_and_its_commands(
    own_host: RawHost, model: ScriptedModel, workspace: Path, number: signal.Signals
) -> None:
    session = own_host.session(workspace, tools=CODING).opened()

    with running_bash(session, model, workspace) as processes:
        own_host.process.send_signal(number)

        assert own_host.process.wait(WAIT_S) == 0
        assert survivors(processes) == []


def test_what_is_no_frame_ends_the_host_and_its_commands(
    own_host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    session = own_host.session(workspace, tools=CODING).opened()

    with running_bash(session, model, workspace) as processes:
        own_host.send_raw(b"no frame\n")

        assert own_host.process.wait(WAIT_S) == EXIT_PROTOCOL
        assert survivors(processes) == []


@pytest.mark.parametrize("end", ["channel", "signal", "no frame"])
def test_no_lock_of_pi_is_left_behind(
    own_host: RawHost, extension: Extension, workspace: Path, tmp_path: Path, end: str
) -> None:
    files = [tmp_path / f"{number}.json" for number in range(16)]
    for file in files:
        file.write_text("{}")
    names = {"sdk": json.dumps(str(own_host.runtime.sdk_entry)), "files": json.dumps([str(file) for file in files])}
    own_host.session(workspace, entries=[extension(LOCKING.format(**names))]).load()

    match end:
        case "channel":
            own_host.close_channel()
        case "signal":
            own_host.process.send_signal(signal.SIGTERM)
        case _:
            own_host.send_raw(b"no frame\n")

    own_host.process.wait(WAIT_S)
    assert list(tmp_path.rglob("*.lock")) == []


def test_the_end_of_the_channel_before_the_greeting_ends_the_host(runtime: Runtime, tmp_path: Path) -> None:
    with RawHost(runtime, tmp_path / "agent", tmp_path) as host:
        host.close_channel()

        assert host.process.wait(WAIT_S) == 0
