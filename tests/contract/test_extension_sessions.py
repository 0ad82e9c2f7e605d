"""Sessions with a pinned extension, on the real server and the real Pi SDK: what it may do and what it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.demo.model import Say
from tests.support.environment import ensure_installed
from tests.support.extensions import FIXTURE_NAME, FIXTURE_PIN, FIXTURE_VERSION, ExtensionWorld, install_package
from tests.support.real import PROFILE as SCRIPTED
from tests.support.real import run_turn
from tests.support.shared_server import SharedServer
from tests.support.trees import kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.support.extensions import Installed, Recorded

READ_ONLY = "read grep find ls"
CODING = "read bash edit write grep find ls"
PLAIN = {**SCRIPTED, "extensions": []}
BAD_TREES = (
    *("other-version", "no-entries", "missing-entry", "escaping", "another-name", "no-json", "in-workspace"),
    "not-there",
)
"""Packages that no session gets, and profiles that want them."""

PROFILES: dict[str, dict[str, Any]] = {
    "reader": {},
    "coder": {"permissionProfile": "coding"},
    "thinker": {"thinkingLevel": "high"},
    "plain": PLAIN,
    "unextended": {"extensions": []},
    **{name: {"extensions": [f"npm:{name}@1.0.0"]} for name in BAD_TREES},
}
"""Of the server that most tests share."""


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture
def world(tmp_path: Path, runtime: Runtime) -> Iterator[ExtensionWorld]:
    with ExtensionWorld(tmp_path / "world", runtime) as world:
        yield world


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, runtime: Runtime) -> Iterator[SharedServer]:
    with ExtensionWorld(tmp_path_factory.mktemp("shared") / "world", runtime) as world:
        world.profiles(PROFILES)
        world.model.on("hello", Say("from the model"))
        install_bad_trees(world)
        yield SharedServer(world)


@pytest.fixture
def shared(server: SharedServer) -> Iterator[SharedServer]:
    """The server that most tests share, without a session, and the extension as new."""
    server.renew()
    yield server
    server.clear()


def start(shared: SharedServer, profile: str = "reader", **behaviour: Any) -> str:
    """The id of a session whose extension behaves so."""
    shared.extension.behave(**behaviour)
    return shared.world.start_session(shared.child, profile)


def text_of(child: Recorded, session: str, prompt: str) -> str:
    turn = run_turn(child, session, prompt)
    assert turn["state"] == "completed", turn
    return str(turn["assistantText"])


def refusal_of(child: Recorded, session: str, prompt: str) -> str:
    return str(child.call("pi_session_prompt", sessionId=session, prompt=prompt)["error"]["code"])


def close(child: Recorded, session: str) -> None:
    assert child.call("pi_session_close", sessionId=session)["ok"]


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


# --- the pin ---------------------------------------------------------------------------------------------------------


def test_a_package_that_is_replaced_between_resolving_and_loading_is_caught(shared: SharedServer) -> None:
    manifest = {"name": FIXTURE_NAME, "version": FIXTURE_VERSION, "pi": {"extensions": ["./src/index.ts"]}}
    extension = shared.extension
    extension.behave(replacesItself=json.dumps(manifest))

    refused = shared.child.call("pi_session_start", workspace="project")

    assert refused["error"]["code"] == "extension_version_mismatch"
    said = shared.failure()
    assert (said["stage"], said["extension"]) == ("extension_load", f"{FIXTURE_NAME}@{FIXTURE_VERSION}")
    assert survivors(extension.processes()) == []
    assert extension.counts() == (0, 0)


def test_an_update_takes_effect_at_the_next_start_and_is_refused_there(shared: SharedServer) -> None:
    extension, child = shared.extension, shared.child
    session = start(shared)
    manifest = extension.directory / "package.json"
    manifest.write_text(manifest.read_text().replace(FIXTURE_VERSION, "1.2.3"))

    refused = child.call("pi_session_start", workspace="project")

    assert refused["error"]["code"] == "extension_version_mismatch"
    assert text_of(child, session, "hello") == "you said: hello (1)"


def install_bad_trees(world: ExtensionWorld) -> None:
    """A package for each of `BAD_TREES` but the last."""
    agent = world.agent_directory
    install_package(agent, "other-version", "1.0.1")
    install_package(agent, "no-entries", entries=[])
    install_package(agent, "missing-entry", entries=["./missing.ts"])
    install_package(agent, "escaping", entries=["../outside.ts"])
    install_package(agent, "another-name", files={"package.json": '{"name": "x", "version": "1.0.0"}'})
    install_package(agent, "no-json", files={"package.json": "{"})
    install_package(world.workspace, "in-workspace")
    (agent / "npm/node_modules/in-workspace").symlink_to(world.workspace / "npm/node_modules/in-workspace")


def test_check_and_server_agree_about_every_tree(shared: SharedServer) -> None:
    child, world = shared.child, shared.world

    checked = subprocess.run(
        [sys.executable, "-m", "pi_session_mcp", "extensions", "check", "--json"],
        env=world.environment,
        capture_output=True,
        check=False,
    )

    report = json.loads(checked.stdout)
    assert (checked.returncode, report["exitCode"], checked.stderr) == (2, 2, b"")
    found = {one["profile"]: one["status"] for one in report["extensions"]}
    assert list(found) == sorted([*BAD_TREES, "reader", "coder", "thinker"])
    assert {found[alike] for alike in ("coder", "thinker")} == {found["reader"]}
    for profile in [*BAD_TREES, "reader"]:
        answer = child.call("pi_session_start", workspace="project", executionProfile=profile)
        assert found[profile] == ("ok" if answer["ok"] else answer["error"]["code"]), profile
    assert {profile for profile, status in found.items() if status != "ok"} == set(BAD_TREES)
    assert str(world.directory) not in checked.stdout.decode() + child.stderr.decode()


def test_an_extension_that_is_installed_meanwhile_needs_no_restart(shared: SharedServer) -> None:
    child = shared.child
    shared.uninstall()
    missing = child.call("pi_session_start", workspace="project")
    assert missing["error"]["code"] == "extension_not_installed"
    said = shared.failure()
    assert (said["stage"], said["extension"]) == ("extension_resolve", FIXTURE_PIN.removeprefix("npm:"))

    shared.renew()

    assert text_of(child, start(shared), "hello") == "you said: hello (1)"
