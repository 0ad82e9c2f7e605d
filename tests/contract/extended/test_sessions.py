"""What an extension may do in its session and what it cannot, on the real server and the real Pi SDK."""

from __future__ import annotations

import os
import signal
from time import sleep
from typing import TYPE_CHECKING

from pi_session_mcp.demo.model import Say
from tests.contract.extended.asking import close, refusal_of, start, text_of
from tests.support.real import PROFILE as SCRIPTED
from tests.support.real import run_turn
from tests.support.trees import survivors

if TYPE_CHECKING:
    from tests.support.extensions import ExtensionWorld, Installed, Recorded
    from tests.support.shared_server import SharedServer

READ_ONLY = "read grep find ls"
CODING = "read bash edit write grep find ls"


def test_a_client_that_looks_around_has_a_host_of_each_kind_started_that_some_profile_needs(
    server: SharedServer,
) -> None:
    server.child.call("pi_capabilities_get")

    wait_for_hosts(server.child, 2)


# --- what an extension brings, and what it does not get --------------------------------------------------------------


def test_an_extension_brings_its_provider_hooks_and_prompt_and_read_only_keeps_its_tools(shared: SharedServer) -> None:
    extension, child, workspace = shared.extension, shared.child, shared.world.workspace
    (workspace / "file").write_text("the real content")
    session = start(shared)

    assert text_of(child, session, "hello") == "you said: hello (1)"
    assert text_of(child, session, "tools") == READ_ONLY
    assert "the real content" in text_of(child, session, 'use read {"path": "file"}')
    assert "not found" in text_of(child, session, "use fixture_tool {}")
    assert "not found" in text_of(child, session, 'use bash {"command": "touch file-of-bash"}')
    assert text_of(child, session, "/fixture now").startswith("you said: /fixture now")
    prompt = text_of(child, session, "prompt")
    assert "fixture-system-prompt" in prompt
    assert "fixture-skill-of-the-package" not in prompt

    assert not (workspace / "file-of-bash").exists()
    assert extension.notes("command") == []
    assert {note["source"] for note in extension.notes("input")} == {"rpc"}
    (started,) = extension.notes("session_start")
    assert (started["reason"], started["mode"]) == ("startup", "print")
    close(child, session)
    assert extension.counts() == (1, 1)


def test_a_coding_session_gets_the_extensions_tool_and_no_other_that_it_wants(shared: SharedServer) -> None:
    child = shared.child
    (shared.world.workspace / "file").write_text("the real content")
    session = start(shared, "coder")

    assert text_of(child, session, "hello") == "you said: hello (1)"
    assert text_of(child, session, "tools") == f"{CODING} fixture_tool"
    assert text_of(child, session, "use fixture_tool {}") == "result: from the fixture"
    assert "not found" in text_of(child, session, "use late_tool {}")
    assert "the real content" in text_of(child, session, 'use read {"path": "file"}')


# --- runs that it starts by itself -----------------------------------------------------------------------------------


def test_a_run_that_an_extension_starts_is_of_its_turn_or_busy_until_it_is_aborted_or_closed(
    shared: SharedServer,
) -> None:
    extension, child = shared.extension, shared.child
    session = start(shared, startsDaemon=True)

    assert run_turn(child, session, "interject during")["state"] == "completed"
    assert text_of(child, session, "next").startswith("you said: next")

    assert text_of(child, session, "interject between").startswith("you said: interject between")
    wait_until_it_speaks(extension, 1)
    # Until the run has really begun, Pi itself turns the prompt down.
    while (code := refusal_of(child, session, "now?")) == "prompt_rejected":
        continue
    assert code == "session_running"
    assert child.call("pi_session_abort", sessionId=session)["session"]["state"] == "idle"

    assert text_of(child, session, "and now").startswith("you said: and now")
    assert "latestTurnId" in child.call("pi_session_get", sessionId=session)["session"]

    text_of(child, session, "interject between")
    wait_until_it_speaks(extension, 2)
    close(child, session)
    assert extension.counts() == (1, 1)
    assert survivors(extension.processes()) == []


def wait_until_it_speaks(extension: Installed, times: int) -> None:
    """Until the extension has begun so many runs between turns."""
    count = 1
    while [note["text"] for note in extension.wait_for("input", count)].count("stay, said by the extension") < times:
        count += 1


# --- two at once -----------------------------------------------------------------------------------------------------


def test_two_sessions_of_one_profile_share_nothing_and_one_survives_the_others_host(shared: SharedServer) -> None:
    extension, child = shared.extension, shared.child
    first, second = start(shared), start(shared)
    pids = [note["pid"] for note in extension.notes("load")]
    assert len(set(pids)) == 2
    assert text_of(child, first, "one") == "you said: one (1)"
    assert text_of(child, first, "two") == "you said: two (2)"
    assert text_of(child, second, "one") == "you said: one (1)"
    turns = [child.call("pi_session_prompt", sessionId=one, prompt="stay")["turn"] for one in (first, second)]

    os.kill(pids[0], signal.SIGKILL)

    ended = child.call("pi_turn_get", sessionId=first, turnId=turns[0]["turnId"], waitMs=30_000)["turn"]
    assert ended["state"] == "failed"
    assert child.call("pi_turn_get", sessionId=second, turnId=turns[1]["turnId"])["turn"]["state"] == "running"
    assert child.call("pi_session_abort", sessionId=second)["session"]["state"] == "idle"
    assert text_of(child, second, "and on") == "you said: and on (3)"
    refused = child.call("pi_session_prompt", sessionId=first, prompt="hello")
    assert refused["error"]["code"] == "pi_runtime_unavailable"


# --- hosts -----------------------------------------------------------------------------------------------------------


def test_a_spare_host_waits_for_the_next_session_and_is_replaced_once_used(shared: SharedServer) -> None:
    child = shared.child
    assert child.call("pi_capabilities_get")["ok"]
    wait_for_hosts(child, 2)  # the other is the one for sessions without extensions
    before = {host.pid: host for host in child.hosts()}

    session = start(shared)

    (loaded,) = shared.extension.notes("load")
    assert loaded["pid"] in before
    wait_for_hosts(child, 3)
    close(child, session)
    assert survivors([before.pop(loaded["pid"])]) == []
    (next_spare,) = {host.pid for host in child.hosts()} - set(before)
    assert next_spare != loaded["pid"]


def wait_for_hosts(child: Recorded, count: int) -> None:
    while len(child.hosts()) < count:
        child.call("pi_session_list")
        sleep(0.05)
    assert len(child.hosts()) == count


def test_without_extensions_sessions_share_a_host_and_nothing_is_loaded(world: ExtensionWorld) -> None:
    extension = world.install()
    alike = {"permissionProfile": "read-only", **SCRIPTED}
    world.configure(executionProfiles={"left-out": {**alike, "default": True}, "empty": {**alike, "extensions": []}})
    world.model.on("hello", Say("from the model"))
    child = world.serve()

    sessions = [world.start_session(child, profile) for profile in ("left-out", "left-out", "empty", "empty")]

    assert [text_of(child, session, "hello") for session in sessions] == ["from the model"] * 4
    assert len(child.hosts()) == 1
    assert extension.notes() == []


def test_sessions_with_and_without_extensions_live_side_by_side_and_share_no_provider(shared: SharedServer) -> None:
    child = shared.child
    extended, plain = start(shared, "reader"), start(shared, "plain")
    refused = child.call("pi_session_start", workspace="project", executionProfile="unextended")
    assert refused["error"]["code"] == "unknown_provider"

    assert text_of(child, extended, "hello") == "you said: hello (1)"
    assert text_of(child, plain, "hello") == "from the model"
    close(child, extended)
    assert text_of(child, plain, "hello") == "from the model"
