"""Sessions with granted external MCP tools, on the real server, the real Pi SDK and real stdio servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.bridge.results import BAD_ARGUMENTS, FAILED, SOURCE_TOO_LARGE, TOO_LARGE
from pi_session_mcp.demo.model import Call, Echo, Say
from tests.support import rounds
from tests.support.environment import ensure_installed
from tests.support.extensions import PROFILE as EXTENDED
from tests.support.extensions import install_fixture
from tests.support.external import Fixture
from tests.support.real import PROFILE, RealWorld, run_turn
from tests.support.trees import kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.process.client import Child

CANARY = "canary-f3a9"
TYPED = {
    "name": "remote/echo",
    "description": "Says é back.",
    "inputSchema": {
        "type": "object",
        "properties": {"n": {"type": "integer", "title": "N", "x-kept": {"deep": [1, None]}}, "s": {"type": "string"}},
        "additionalProperties": False,
    },
}


class BridgeWorld(RealWorld):
    """The real product; each profile's sessions have the external servers that a test configures."""

    def __init__(self, directory: Path, runtime: Runtime) -> None:
        super().__init__(directory, runtime)
        self.fixtures: list[Fixture] = []

    def fixture(self, **switches: Any) -> Fixture:
        fixture = Fixture(self.directory / f"notes-{len(self.fixtures)}", **switches)
        self.fixtures.append(fixture)
        return fixture

    def profiles(self, **servers: Mapping[str, Any]) -> None:
        """A profile for each name, with these servers; the default one has none."""
        plain = {"plain": {"default": True, "permissionProfile": "read-only", **PROFILE}}
        granted = {
            name: {"permissionProfile": "read-only", **PROFILE, "mcpServers": content}
            for name, content in servers.items()
        }
        self.configure(executionProfiles={**plain, **granted})

    def refusal(self, child: Child, profile: str) -> str:
        started = child.call("pi_session_start", workspace="project", executionProfile=profile)
        assert not started["ok"], started
        return str(started["error"]["code"])

    def tools_of_last_request(self) -> dict[str, dict[str, Any]]:
        return {tool["function"]["name"]: tool["function"] for tool in self.model.requests[-1]["tools"]}

    def left(self) -> list[str]:
        """What is still alive of the servers, within a while."""
        alive = [process for fixture in self.fixtures for process in fixture.alive()]
        return [str(process) for process in survivors(alive)]


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture
def world(tmp_path: Path, runtime: Runtime) -> Iterator[BridgeWorld]:
    with BridgeWorld(tmp_path / "world", runtime) as world:
        yield world
        kill_all([process for fixture in world.fixtures for process in fixture.alive()])


def said(world: BridgeWorld, child: Child, session: str, tool: str, **arguments: object) -> str:
    """What the model is told when it calls a tool."""
    world.model.on("call it", Call(tool, arguments), Echo())
    turn = run_turn(child, session, "call it")
    assert turn["state"] == "completed", turn
    return str(turn["assistantText"])


def close(child: Child, session: str) -> None:
    assert child.call("pi_session_close", sessionId=session)["session"]["state"] == "closed"


# --- discovery -------------------------------------------------------------------------------------------------------


def test_each_failure_of_discovery_has_its_code_and_its_diagnostic(world: BridgeWorld) -> None:
    many = [f"tool-{number}" for number in range(513)]
    cases: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
        "empty": ({"tools": []}, "external_mcp_no_tools", {"discoveredTools": 0}),
        "lacking": (
            {"tools": ["a", "b"]},
            "external_mcp_grant_tool_missing",
            {"tool": "echo", "discoveredTools": 2},
        ),
        "too-many": ({"tools": many}, "external_mcp_unavailable", {"discoveredTools": 512}),
        "twice": ({"tools": ["echo", "echo"]}, "external_mcp_unavailable", {"discoveredTools": 1}),
        "malformed": ({"tools": ["echo", {"name": CANARY}]}, "external_mcp_unavailable", {}),
        "ends": ({"start": "exit"}, "external_mcp_unavailable", {}),
    }
    world.profiles(**{name: {"library": world.fixture(**case[0]).configured()} for name, case in cases.items()})
    child = world.serve()

    assert [world.refusal(child, name) for name in cases] == [code for _, code, _ in cases.values()]

    assert world.left() == []
    assert child.call("pi_session_list")["sessions"] == []
    session = world.start_session(child, "plain")
    assert run_turn(child, session, "still there?")["assistantText"] == "ok"
    child.close_stdin()
    child.wait()
    assert [said for said in child.diagnostics if said["event"] == "pi_session_creation_failed"] == [
        {
            "level": "error",
            "event": "pi_session_creation_failed",
            "code": code,
            "stage": "mcp_tools",
            "profile": name,
            "provider": "scripted",
            "model": "scripted-1",
            "thinkingLevel": "off",
            "server": "library",
            **more,
        }
        for name, (_, code, more) in cases.items()
    ]
    assert CANARY.encode() not in child.stderr


def test_a_variable_that_is_missing_fails_the_start_and_none_is_shown(world: BridgeWorld) -> None:
    fine, lacking = world.fixture(tools=["environment"]), world.fixture()
    world.profiles(
        fine={"library": fine.configured("environment", envFrom={"API_KEY": "HOST_KEY"})},
        lacking={"library": lacking.configured(envFrom={"API_KEY": "NOT_THERE"})},
    )
    child = world.serve(HOST_KEY=CANARY, OTHER_SECRET="not for servers")

    assert world.refusal(child, "lacking") == "external_mcp_unavailable"
    session = world.start_session(child, "fine")
    told = json.loads(said(world, child, session, "mcp_library_environment"))

    assert told["environment"]["API_KEY"] == CANARY
    assert told["directory"] == str(world.workspace)
    assert "OTHER_SECRET" not in told["environment"]
    assert "PI_SESSION_MCP_CONFIG" not in told["environment"]
    assert lacking.notes() == []
    child.call("pi_session_get", sessionId=session)
    child.call("pi_capabilities_get")
    assert CANARY.encode() not in child.stderr
    assert b"NOT_THERE" not in child.stderr


# --- what the model sees and calls -----------------------------------------------------------------------------------


def test_the_model_sees_exactly_the_granted_tools_with_their_own_schemas(world: BridgeWorld) -> None:
    fixture, other = world.fixture(tools=[TYPED, "secret"]), world.fixture()
    grants = {"say": {"name": "remote/echo", "readOnly": True}}
    world.profiles(granted={"library": fixture.configured(tools=grants), "other": other.configured()})
    child = world.serve()
    session = world.start_session(child, "granted")

    assert said(world, child, session, "mcp_library_say", n=7) == '{"n": 7}'

    tools = world.tools_of_last_request()
    assert list(tools) == ["read", "grep", "find", "ls", "mcp_library_say", "mcp_other_echo"]
    assert tools["mcp_library_say"]["description"] == TYPED["description"]
    assert tools["mcp_library_say"]["parameters"] == TYPED["inputSchema"]
    assert "not found" in said(world, child, session, "mcp_library_secret")
    assert [note["tool"] for note in fixture.notes("call")] == ["remote/echo"]
    assert other.notes("call") == []


@pytest.mark.parametrize("arguments", [{"n": "seven"}, {"n": 1.5}, {"n": "7"}, {"n": None}, {"m": 1}, {"s": 7}])
def test_an_argument_that_breaks_the_schema_never_reaches_the_server(
    world: BridgeWorld, arguments: dict[str, Any]
) -> None:
    fixture = world.fixture(tools=[{**TYPED, "name": "echo"}])
    world.profiles(granted={"library": fixture.configured()})
    child = world.serve()
    session = world.start_session(child, "granted")

    told = said(world, child, session, "mcp_library_echo", **arguments)

    assert told == BAD_ARGUMENTS or told.startswith("Validation failed")
    assert fixture.notes("call") == []
    assert (
        said(world, child, session, "mcp_library_echo", n=7, s="\ud83d\ude42 \0")
        == '{"n": 7, "s": "\\ud83d\\ude42 \\u0000"}'
    )


def test_results_and_errors_become_what_the_model_is_told(world: BridgeWorld) -> None:
    too_large = json.dumps({"code": "SOURCE_TOO_LARGE", "message": "Ask for less."})
    text = {"type": "text", "text": too_large}
    cases = {
        "text": ({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}, "onetwo"),
        "image": (
            {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
            '{"type":"image","data":"AAAA","mimeType":"image/png"}',
        ),
        "structured": ({"content": [], "structuredContent": {"a": ["é"]}}, '{"a":["é"]}'),
        "error": ({"content": [{"type": "text", "text": CANARY}], "isError": True}, FAILED),
        "malformed": ({"content": CANARY}, FAILED),
        "large": ({"content": [{"type": "text", "text": "x" * 262_144}]}, TOO_LARGE),
        "told": ({"content": [text], "isError": True}, SOURCE_TOO_LARGE),
        "not-told": ({"content": [text, text], "isError": True}, FAILED),
        "die": (None, FAILED),
    }
    replies = {name: json.dumps(reply) for name, (reply, _) in cases.items() if reply is not None}
    fixture = world.fixture(tools=list(cases), replies=replies, noise=True)
    world.profiles(granted={"library": fixture.configured(*cases)})
    child = world.serve()
    session = world.start_session(child, "granted")

    for name, (_, expected) in cases.items():
        told = said(world, child, session, f"mcp_library_{name}")
        assert told.replace("\n", "") == expected, name

    assert child.call("pi_session_get", sessionId=session)["session"]["state"] == "idle"
    assert said(world, child, session, "mcp_library_text") == FAILED
    assert run_turn(child, session, "and you?")["state"] == "completed"
    close(child, session)
    assert world.left() == []


def test_an_empty_result_is_a_result(world: BridgeWorld) -> None:
    fixture = world.fixture(replies={"echo": '{"content": []}'})
    world.profiles(granted={"library": fixture.configured()})
    world.model.on("call it", Call("mcp_library_echo"), Say("went on"))
    child = world.serve()
    session = world.start_session(child, "granted")

    assert run_turn(child, session, "call it")["assistantText"] == "went on"
    (result,) = [message for message in world.model.requests[-1]["messages"] if message["role"] == "tool"]
    assert FAILED not in json.dumps(result)


def test_calls_of_one_answer_run_one_after_the_other_and_each_gets_its_own_result(world: BridgeWorld) -> None:
    fixture = world.fixture()
    world.profiles(granted={"library": fixture.configured()})
    calls = [Call("mcp_library_echo", {"n": number}) for number in range(5)]
    world.model.on("call them", *calls, Echo(separator=";"))
    child = world.serve()
    session = world.start_session(child, "granted")

    assert run_turn(child, session, "call them")["assistantText"] == ";".join(f'{{"n": {n}}}' for n in range(5))


# --- the end of calls, sessions and servers --------------------------------------------------------------------------


def start_hanging_call(world: BridgeWorld, child: Child, fixture: Fixture, session: str) -> str:
    world.model.on("hang", Call("mcp_library_hang"), Say("went on"))
    turn = child.call("pi_session_prompt", sessionId=session, prompt="hang")["turn"]["turnId"]
    fixture.wait_for("call")
    return str(turn)


def test_an_abort_ends_the_call_and_the_session_and_its_server_live_on(world: BridgeWorld) -> None:
    fixture = world.fixture(tools=["echo", "hang"])
    world.profiles(granted={"library": fixture.configured("echo", "hang")})
    child = world.serve()
    session = world.start_session(child, "granted")
    turn = start_hanging_call(world, child, fixture, session)

    assert child.call("pi_session_abort", sessionId=session)["session"]["state"] == "idle"

    fixture.wait_for("cancelled")
    assert child.call("pi_turn_get", sessionId=session, turnId=turn)["turn"]["state"] == "aborted"
    assert said(world, child, session, "mcp_library_echo", n=1) == '{"n": 1}'
    assert len(fixture.pids) == 1


def test_closing_ends_a_call_and_a_server_that_ignores_everything(world: BridgeWorld) -> None:
    fixture = world.fixture(tools=["hang"], deaf=True, child=True)
    world.profiles(granted={"library": fixture.configured("hang")})
    child = world.serve()
    other = world.start_session(child, "plain")
    session = world.start_session(child, "granted")
    start_hanging_call(world, child, fixture, session)

    close(child, session)

    assert fixture.alive() == []
    assert run_turn(child, other, "still there?")["state"] == "completed"
    assert world.start_session(child, "plain")


@pytest.mark.parametrize("end", ["end of input", "SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("when", ["connecting", "listing", "idle", "in a call"])
def test_no_server_outlives_ours(world: BridgeWorld, when: str, end: str) -> None:
    switches: dict[str, Any] = {"connecting": {"start": "silent"}, "listing": {"hold": "list"}}.get(when, {})
    fixture = world.fixture(tools=["hang"], child=True, **switches)
    world.profiles(granted={"library": fixture.configured("hang")})
    child = world.serve()
    if switches:
        child.start_request(
            "tools/call",
            {"name": "pi_session_start", "arguments": {"workspace": "project", "executionProfile": "granted"}},
        )
        fixture.wait_for("child")
    else:
        session = world.start_session(child, "granted")
        if when == "in a call":
            start_hanging_call(world, child, fixture, session)
    assert len(fixture.alive()) == 2

    match end:
        case "end of input":
            child.close_stdin()
        case "SIGTERM":
            child.signal(signal.SIGTERM)
        case _:
            child.signal(signal.SIGKILL)

    assert child.wait() == {"end of input": 0, "SIGTERM": 143}.get(end, -signal.SIGKILL)
    assert world.left() == []


def test_a_server_that_starts_slowly_is_waited_for(world: BridgeWorld) -> None:
    go = world.directory / "go"
    fixture = world.fixture(start="slow", go=str(go))
    world.profiles(granted={"library": fixture.configured()})
    child = world.serve()
    request = child.start_request(
        "tools/call", {"name": "pi_session_start", "arguments": {"workspace": "project", "executionProfile": "granted"}}
    )
    fixture.wait_for("start")
    go.touch()
    assert child.answer_to(request)["result"]["structuredContent"]["ok"]


def test_a_start_that_its_client_cancels_leaves_no_server(world: BridgeWorld) -> None:
    go = world.directory / "go"
    fixture = world.fixture(start="slow", go=str(go))
    world.profiles(granted={"library": fixture.configured()})
    child = world.serve()
    request = child.start_request(
        "tools/call", {"name": "pi_session_start", "arguments": {"workspace": "project", "executionProfile": "granted"}}
    )
    fixture.wait_for("start")
    child.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}})
    assert child.call("pi_session_list")["sessions"] == []
    go.touch()

    fixture.wait_for("end of input")
    assert world.left() == []
    assert child.call("pi_session_list")["sessions"] == []


# --- who has which ---------------------------------------------------------------------------------------------------


def test_each_session_has_servers_of_its_own_and_one_without_grants_has_none(world: BridgeWorld) -> None:
    fixture = world.fixture()
    world.profiles(granted={"library": fixture.configured()})
    child = world.serve()
    world.start_session(child, "plain")
    assert fixture.pids == []

    one, two = world.start_session(child, "granted"), world.start_session(child, "granted")
    assert len(set(fixture.pids)) == len(fixture.alive()) == 2
    said(world, child, one, "mcp_library_echo", n=1)
    close(child, one)

    assert [process.pid for process in fixture.alive()] == [fixture.pids[1]]
    assert said(world, child, two, "mcp_library_echo", n=2) == '{"n": 2}'
    assert [(note["pid"], note["arguments"]) for note in fixture.notes("call")] == [
        (fixture.pids[0], {"n": 1}),
        (fixture.pids[1], {"n": 2}),
    ]


def test_the_end_of_the_host_ends_the_servers_of_its_sessions(world: BridgeWorld, runtime: Runtime) -> None:
    world._traced = True
    fixture = world.fixture()
    world.configure(
        executionProfiles={
            "granted": {
                "default": True,
                "permissionProfile": "read-only",
                **PROFILE,
                "mcpServers": {"library": fixture.configured()},
            }
        }
    )
    child = world.serve()
    session = world.start_session(child, "granted")
    host = world.host_pid()
    assert len(fixture.alive()) == 1

    os.kill(host, signal.SIGKILL)

    assert world.left() == []
    while child.call("pi_session_get", sessionId=session)["session"]["state"] != "failed":
        pass
    close(child, session)


def test_rounds_with_grants_leave_descriptors_tasks_and_processes_as_they_were(world: BridgeWorld) -> None:
    granted = {"permissionProfile": "read-only", **PROFILE, "mcpServers": {"library": world.fixture().configured()}}
    world.configure(executionProfiles={"granted": {"default": True, **granted}})
    command = [sys.executable, rounds.__file__, str(world.configuration), "25", "5,25"]
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
    assert len(set(world.fixtures[0].pids)) == 25
    assert world.left() == []


# --- together with extensions ----------------------------------------------------------------------------------------


def with_extension(world: BridgeWorld, fixture: Fixture) -> None:
    granted = {"permissionProfile": "read-only", **EXTENDED, "mcpServers": {"library": fixture.configured()}}
    world.configure(
        executionProfiles={
            "reader": {"default": True, **granted},
            "coder": {**granted, "permissionProfile": "coding"},
        }
    )


@pytest.mark.parametrize(
    ("profile", "tools"),
    [
        ("reader", "read grep find ls mcp_library_echo"),
        ("coder", "read bash edit write grep find ls mcp_library_echo fixture_tool"),
    ],
)
def test_grants_and_extensions_make_one_list_of_tools(world: BridgeWorld, profile: str, tools: str) -> None:
    fixture = world.fixture()
    install_fixture(world.agent_directory)
    with_extension(world, fixture)
    child = world.serve()
    session = world.start_session(child, profile)

    assert sorted(run_turn(child, session, "tools")["assistantText"].split()) == sorted(tools.split())
    assert '{"n": 7}' in run_turn(child, session, 'use mcp_library_echo {"n": 7}')["assistantText"]
    close(child, session)
    assert world.left() == []


@pytest.mark.parametrize("profile", ["reader", "coder"])
def test_an_extension_cannot_take_the_name_of_a_granted_tool(world: BridgeWorld, profile: str) -> None:
    fixture = world.fixture()
    install_fixture(world.agent_directory, toolName="mcp_library_echo")
    with_extension(world, fixture)
    child = world.serve()

    assert world.refusal(child, profile) == "extension_tool_conflict"
    assert len(fixture.pids) == 1
    assert world.left() == []
