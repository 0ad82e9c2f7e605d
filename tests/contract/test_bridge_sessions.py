"""Sessions with granted external MCP tools, on the real server, the real Pi SDK and real stdio servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.bridge.results import BAD_ARGUMENTS, FAILED, SOURCE_TOO_LARGE, TOO_LARGE
from pi_session_mcp.demo.model import Call, Echo, Say
from tests.support.environment import ensure_installed
from tests.support.extensions import PROFILE as EXTENDED
from tests.support.extensions import install_fixture
from tests.support.external import BridgeWorld, Fixture, close, said
from tests.support.real import run_turn
from tests.support.trees import kill_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

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


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture
def world(tmp_path: Path, runtime: Runtime) -> Iterator[BridgeWorld]:
    with BridgeWorld(tmp_path / "world", runtime) as world:
        yield world
        kill_all([process for fixture in world.fixtures for process in fixture.alive()])


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


WRONG: tuple[dict[str, Any], ...] = ({"n": "seven"}, {"n": 1.5}, {"n": "7"}, {"n": None}, {"m": 1}, {"s": 7})


def test_an_argument_that_breaks_the_schema_never_reaches_the_server(world: BridgeWorld) -> None:
    fixture = world.fixture(tools=[{**TYPED, "name": "echo"}])
    world.profiles(granted={"library": fixture.configured()})
    child = world.serve()
    session = world.start_session(child, "granted")

    for arguments in WRONG:
        told = said(world, child, session, "mcp_library_echo", **arguments)
        assert told == BAD_ARGUMENTS or told.startswith("Validation failed"), arguments

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
