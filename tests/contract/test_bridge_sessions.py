"""Sessions with granted external MCP tools, on the real server, the real Pi SDK and real stdio servers."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.bridge.results import BAD_ARGUMENTS, FAILED, SOURCE_TOO_LARGE, TOO_LARGE
from pi_session_mcp.demo.model import Call, Echo, Say
from tests.support.environment import ensure_installed
from tests.support.extensions import FIXTURE_NAME, Installed, install_fixture, package_directory
from tests.support.extensions import PROFILE as EXTENDED
from tests.support.external import BridgeWorld, close, said
from tests.support.real import PROFILE as SCRIPTED
from tests.support.real import run_turn
from tests.support.shared_bridge import SharedBridge
from tests.support.trees import kill_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.support.external import Fixture

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


WRONG: tuple[dict[str, Any], ...] = ({"n": "seven"}, {"n": 1.5}, {"n": "7"}, {"n": None}, {"m": 1}, {"s": 7})
_SAID = json.dumps({"code": "SOURCE_TOO_LARGE", "message": "Ask for less."})
_TEXT = {"type": "text", "text": _SAID}
RESULTS: dict[str, tuple[Any, str]] = {
    "text": ({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}, "onetwo"),
    "image": (
        {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
        "[Image left out: image/png, 3 bytes.]",
    ),
    "structured": ({"content": [], "structuredContent": {"a": ["é"]}}, '{"a":["é"]}'),
    "error": ({"content": [{"type": "text", "text": CANARY}], "isError": True}, FAILED),
    "malformed": ({"content": CANARY}, FAILED),
    "large": ({"content": [{"type": "text", "text": "x" * 262_144}]}, TOO_LARGE),
    "told": ({"content": [_TEXT], "isError": True}, SOURCE_TOO_LARGE),
    "not-told": ({"content": [_TEXT, _TEXT], "isError": True}, FAILED),
    "die": (None, FAILED),
}
"""What a tool answers, by its name, and what the model is told."""


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, runtime: Runtime) -> Iterator[SharedBridge]:
    replies = {name: json.dumps(reply) for name, (reply, _) in RESULTS.items() if reply is not None}
    with BridgeWorld(tmp_path_factory.mktemp("shared") / "world", runtime) as world:
        fixtures = {
            "plain": world.fixture(),
            "secretive": world.fixture(tools=[TYPED, "secret"]),
            "typed": world.fixture(tools=[{**TYPED, "name": "echo"}]),
            "replying": world.fixture(tools=list(RESULTS), replies=replies, noise=True),
            "empty": world.fixture(replies={"echo": '{"content": []}'}),
            "telling": world.fixture(tools=["environment"]),
            "lacking": world.fixture(),
            "extended": world.fixture(tools=[{**TYPED, "name": "echo"}]),
        }
        world.configure(executionProfiles=profiles(fixtures))
        yield SharedBridge(world, fixtures, {"HOST_KEY": CANARY, "OTHER_SECRET": "not for servers"})


def profiles(fixtures: Mapping[str, Fixture]) -> dict[str, dict[str, Any]]:
    """Of the server that most tests share."""
    say = {"say": {"name": "remote/echo", "readOnly": True}}
    servers = {
        "plain": {},
        "library": {"library": fixtures["plain"].configured()},
        "two": {"library": fixtures["secretive"].configured(tools=say), "other": fixtures["plain"].configured()},
        "typed": {"library": fixtures["typed"].configured()},
        "replying": {"library": fixtures["replying"].configured(*RESULTS)},
        "empty": {"library": fixtures["empty"].configured()},
        "telling": {"library": fixtures["telling"].configured("environment", envFrom={"API_KEY": "HOST_KEY"})},
        "lacking": {"library": fixtures["lacking"].configured(envFrom={"API_KEY": "NOT_THERE"})},
    }
    reading = {"permissionProfile": "read-only"}
    extended = {**EXTENDED, "mcpServers": {"library": fixtures["extended"].configured()}}
    return {
        **{
            name: {**reading, **SCRIPTED, "default": name == "plain", "mcpServers": has}
            for name, has in servers.items()
        },
        "reader": {**reading, **extended},
        "beside": {**reading, **extended, **SCRIPTED},
        "coder": {"permissionProfile": "coding", **extended},
    }


@pytest.fixture
def shared(bridge: SharedBridge) -> Iterator[SharedBridge]:
    """The server that most tests share, without a session."""
    bridge.renew()
    yield bridge
    bridge.clear()


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
        "malformed": (
            {"tools": [{"name": "echo", "inputSchema": {"type": CANARY}}, {"name": CANARY}]},
            "external_mcp_unavailable",
            {"tool": "echo", "discoveredTools": 2},
        ),
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


def test_a_variable_that_is_missing_fails_the_start_and_none_is_shown(shared: SharedBridge) -> None:
    world, child = shared.world, shared.child

    assert world.refusal(child, "lacking") == "external_mcp_unavailable"
    session = world.start_session(child, "telling")
    told = json.loads(said(world, child, session, "mcp_library_environment"))

    assert told["environment"]["API_KEY"] == CANARY
    assert told["directory"] == str(world.workspace)
    assert "OTHER_SECRET" not in told["environment"]
    assert "PI_SESSION_MCP_CONFIG" not in told["environment"]
    assert shared.fixtures["lacking"].notes() == []
    child.call("pi_session_get", sessionId=session)
    child.call("pi_capabilities_get")
    assert CANARY.encode() not in child.stderr
    assert b"NOT_THERE" not in child.stderr


# --- what the model sees and calls -----------------------------------------------------------------------------------


def test_the_model_sees_exactly_the_granted_tools_with_their_own_schemas(shared: SharedBridge) -> None:
    world, child = shared.world, shared.child
    fixture, other = shared.fixtures["secretive"], shared.fixtures["plain"]
    called = len(other.notes("call"))
    session = shared.start("two")

    assert said(world, child, session, "mcp_library_say", n=7) == '{"n": 7}'

    tools = world.tools_of_last_request()
    assert list(tools) == ["read", "grep", "find", "ls", "mcp_library_say", "mcp_other_echo"]
    assert tools["mcp_library_say"]["description"] == TYPED["description"]
    assert tools["mcp_library_say"]["parameters"] == TYPED["inputSchema"]
    assert "not found" in said(world, child, session, "mcp_library_secret")
    assert [note["tool"] for note in fixture.notes("call")] == ["remote/echo"]
    assert len(other.notes("call")) == called


def test_an_argument_that_breaks_the_schema_never_reaches_the_server(shared: SharedBridge) -> None:
    world, child, fixture = shared.world, shared.child, shared.fixtures["typed"]
    session = shared.start("typed")

    for arguments in WRONG:
        told = said(world, child, session, "mcp_library_echo", **arguments)
        assert told == BAD_ARGUMENTS or told.startswith("Validation failed"), arguments

    assert fixture.notes("call") == []
    assert (
        said(world, child, session, "mcp_library_echo", n=7, s="\ud83d\ude42 \0")
        == '{"n": 7, "s": "\\ud83d\\ude42 \\u0000"}'
    )


def test_results_and_errors_become_what_the_model_is_told(shared: SharedBridge) -> None:
    world, child = shared.world, shared.child
    session = shared.start("replying")

    for name, (_, expected) in RESULTS.items():
        told = said(world, child, session, f"mcp_library_{name}")
        assert told.replace("\n", "") == expected, name

    assert child.call("pi_session_get", sessionId=session)["session"]["state"] == "idle"
    assert said(world, child, session, "mcp_library_text") == FAILED
    assert run_turn(child, session, "and you?")["state"] == "completed"
    close(child, session)
    assert world.left() == []


def test_an_empty_result_is_a_result(shared: SharedBridge) -> None:
    world, child = shared.world, shared.child
    world.model.on("call it", Call("mcp_library_echo"), Say("went on"))
    session = shared.start("empty")

    assert run_turn(child, session, "call it")["assistantText"] == "went on"
    (result,) = [message for message in world.model.requests[-1]["messages"] if message["role"] == "tool"]
    assert FAILED not in json.dumps(result)


def test_calls_of_one_answer_run_one_after_the_other_and_each_gets_its_own_result(shared: SharedBridge) -> None:
    calls = [Call("mcp_library_echo", {"n": number}) for number in range(5)]
    shared.world.model.on("call them", *calls, Echo(separator=";"))
    session = shared.start("library")

    assert run_turn(shared.child, session, "call them")["assistantText"] == ";".join(f'{{"n": {n}}}' for n in range(5))


# --- together with extensions ----------------------------------------------------------------------------------------


@pytest.fixture
def extended(shared: SharedBridge) -> Iterator[SharedBridge]:
    """With the fixture extension installed."""
    install_fixture(shared.world.agent_directory)
    yield shared
    shared.clear()
    shutil.rmtree(shared.world.agent_directory / "npm")


@pytest.mark.parametrize(
    ("profile", "tools"),
    [
        ("reader", "read grep find ls mcp_library_echo"),
        ("coder", "read bash edit write grep find ls mcp_library_echo fixture_tool"),
    ],
)
def test_grants_and_extensions_make_one_list_of_tools(extended: SharedBridge, profile: str, tools: str) -> None:
    world, child = extended.world, extended.child
    session = extended.start(profile)

    assert sorted(run_turn(child, session, "tools")["assistantText"].split()) == sorted(tools.split())
    assert '{"n": 7}' in run_turn(child, session, 'use mcp_library_echo {"n": 7}')["assistantText"]
    close(child, session)
    assert world.left() == []


def test_a_model_beside_an_extension_sees_the_whole_schema_as_well(extended: SharedBridge) -> None:
    session = extended.start("beside")
    assert said(extended.world, extended.child, session, "mcp_library_echo", n=7) == '{"n": 7}'
    shown = extended.world.tools_of_last_request()["mcp_library_echo"]
    assert shown["parameters"] == TYPED["inputSchema"]


@pytest.mark.parametrize("profile", ["reader", "coder"])
def test_an_extension_cannot_take_the_name_of_a_granted_tool(extended: SharedBridge, profile: str) -> None:
    world, fixture = extended.world, extended.fixtures["extended"]
    Installed(package_directory(world.agent_directory, FIXTURE_NAME)).behave(toolName="mcp_library_echo")
    before = len(fixture.pids)

    assert world.refusal(extended.child, profile) == "extension_tool_conflict"
    assert len(fixture.pids) == before + 1
    assert world.left() == []
