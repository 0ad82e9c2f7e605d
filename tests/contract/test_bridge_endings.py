"""However calls, sessions, servers and the server itself end, sessions with external tools leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.demo.model import Call, Say
from tests.support import rounds
from tests.support.environment import ensure_installed
from tests.support.external import BridgeWorld, Fixture, close, said
from tests.support.real import PROFILE, run_turn
from tests.support.shared_bridge import SharedBridge
from tests.support.trees import kill_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.process.client import Child


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture
def world(tmp_path: Path, runtime: Runtime) -> Iterator[BridgeWorld]:
    with BridgeWorld(tmp_path / "world", runtime) as world:
        yield world
        kill_all([process for fixture in world.fixtures for process in fixture.alive()])


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, runtime: Runtime) -> Iterator[SharedBridge]:
    with BridgeWorld(tmp_path_factory.mktemp("shared") / "world", runtime) as world:
        world._traced = True
        fixtures = {
            "hanging": world.fixture(tools=["echo", "hang"]),
            "deaf": world.fixture(tools=["hang"], deaf=True, child=True),
            "slow": world.fixture(start="slow", go=str(world.directory / "go")),
            "cancelled": world.fixture(start="slow", go=str(world.directory / "go-cancelled")),
            "library": world.fixture(),
            "bereft": world.fixture(),
        }
        tools = {"hanging": ("echo", "hang"), "deaf": ("hang",)}
        world.profiles(**{n: {"library": one.configured(*tools.get(n, ()))} for n, one in fixtures.items()})
        yield SharedBridge(world, fixtures, {})


@pytest.fixture
def shared(bridge: SharedBridge) -> Iterator[SharedBridge]:
    """The server that the tests share which do not end it, without a session."""
    bridge.renew()
    yield bridge
    bridge.clear()


# --- the end of calls, sessions and servers --------------------------------------------------------------------------


def start_hanging_call(world: BridgeWorld, child: Child, fixture: Fixture, session: str) -> str:
    world.model.on("hang", Call("mcp_library_hang"), Say("went on"))
    turn = child.call("pi_session_prompt", sessionId=session, prompt="hang")["turn"]["turnId"]
    fixture.wait_for("call")
    return str(turn)


def test_an_abort_ends_the_call_and_the_session_and_its_server_live_on(shared: SharedBridge) -> None:
    world, child, fixture = shared.world, shared.child, shared.fixtures["hanging"]
    session = shared.start("hanging")
    turn = start_hanging_call(world, child, fixture, session)

    assert child.call("pi_session_abort", sessionId=session)["session"]["state"] == "idle"

    fixture.wait_for("cancelled")
    assert child.call("pi_turn_get", sessionId=session, turnId=turn)["turn"]["state"] == "aborted"
    assert said(world, child, session, "mcp_library_echo", n=1) == '{"n": 1}'
    assert len(fixture.pids) == 1


def test_closing_ends_a_call_and_a_server_that_ignores_everything(shared: SharedBridge) -> None:
    child, fixture = shared.child, shared.fixtures["deaf"]
    other, session = shared.start("plain"), shared.start("deaf")
    start_hanging_call(shared.world, child, fixture, session)

    close(child, session)

    assert fixture.alive() == []
    assert run_turn(child, other, "still there?")["state"] == "completed"
    assert shared.start("plain")


MOMENTS: dict[str, dict[str, Any]] = {
    "connecting": {"start": "silent"},
    "listing": {"hold": "list"},
    "idle": {},
    "in-a-call": {},
}
"""How far sessions have come, and what their servers do for it."""


@pytest.mark.parametrize("end", ["end of input", "SIGTERM", "SIGKILL"])
def test_no_server_outlives_ours_however_far_its_session_has_come(world: BridgeWorld, end: str) -> None:
    fixtures = {when: world.fixture(tools=["hang"], child=True, **switches) for when, switches in MOMENTS.items()}
    world.profiles(**{when: {"library": fixture.configured("hang")} for when, fixture in fixtures.items()})
    child = world.serve()
    for when, fixture in fixtures.items():
        if MOMENTS[when]:
            begin_to_start(child, when)
            fixture.wait_for("child")
        else:
            session = world.start_session(child, when)
    start_hanging_call(world, child, fixtures["in-a-call"], session)
    assert [len(fixture.alive()) for fixture in fixtures.values()] == [2] * 4

    match end:
        case "end of input":
            child.close_stdin()
        case "SIGTERM":
            child.signal(signal.SIGTERM)
        case _:
            child.signal(signal.SIGKILL)

    assert child.wait() == {"end of input": 0, "SIGTERM": 143}.get(end, -signal.SIGKILL)
    assert world.left() == []


def begin_to_start(child: Child, profile: str) -> int:
    """The request for a session that is not answered yet."""
    arguments = {"workspace": "project", "executionProfile": profile}
    return child.start_request("tools/call", {"name": "pi_session_start", "arguments": arguments})


def test_a_server_that_starts_slowly_is_waited_for(shared: SharedBridge) -> None:
    child = shared.child
    request = begin_to_start(child, "slow")
    shared.fixtures["slow"].wait_for("start")
    (shared.world.directory / "go").touch()
    assert child.answer_to(request)["result"]["structuredContent"]["ok"]


def test_a_start_that_its_client_cancels_leaves_no_server(shared: SharedBridge) -> None:
    world, child, fixture = shared.world, shared.child, shared.fixtures["cancelled"]
    request = begin_to_start(child, "cancelled")
    fixture.wait_for("start")
    child.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}})
    assert child.call("pi_session_list")["sessions"] == []
    (world.directory / "go-cancelled").touch()

    fixture.wait_for("end of input")
    assert world.left() == []
    assert child.call("pi_session_list")["sessions"] == []


# --- who has which ---------------------------------------------------------------------------------------------------


def test_each_session_has_servers_of_its_own_and_one_without_grants_has_none(shared: SharedBridge) -> None:
    world, child, fixture = shared.world, shared.child, shared.fixtures["library"]
    shared.start("plain")
    assert fixture.pids == []

    one, two = shared.start("library"), shared.start("library")
    assert len(set(fixture.pids)) == len(fixture.alive()) == 2
    said(world, child, one, "mcp_library_echo", n=1)
    close(child, one)

    assert [process.pid for process in fixture.alive()] == [fixture.pids[1]]
    assert said(world, child, two, "mcp_library_echo", n=2) == '{"n": 2}'
    assert [(note["pid"], note["arguments"]) for note in fixture.notes("call")] == [
        (fixture.pids[0], {"n": 1}),
        (fixture.pids[1], {"n": 2}),
    ]


def test_the_end_of_the_host_ends_the_servers_of_its_sessions(shared: SharedBridge) -> None:
    world, child = shared.world, shared.child
    session = shared.start("bereft")
    host = world.host_pid()
    assert len(shared.fixtures["bereft"].alive()) == 1

    os.kill(host, signal.SIGKILL)

    assert world.left() == []
    while child.call("pi_session_get", sessionId=session)["session"]["state"] != "failed":
        pass
    close(child, session)


def test_rounds_with_grants_leave_descriptors_tasks_and_processes_as_they_were(world: BridgeWorld) -> None:
    granted = {"permissionProfile": "read-only", **PROFILE, "mcpServers": {"library": world.fixture().configured()}}
    world.configure(executionProfiles={"granted": {"default": True, **granted}})
    command = [sys.executable, rounds.__file__, str(world.configuration), "13", "3,13"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=world.environment, **pipes) as process:  # type: ignore[call-overload]
        told = []
        for _ in range(2):
            told.append(json.loads(process.stdout.readline()))
            process.stdin.write("\n")
            process.stdin.flush()
    assert process.returncode == 0

    counted = ("descriptors", "tasks", "processes", "host descriptors")
    assert [told[1][name] for name in counted] == [told[0][name] for name in counted]
    assert len(set(world.fixtures[0].pids)) == 13
    assert world.left() == []
