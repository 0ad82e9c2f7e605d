"""The tools as clients of both eras of the protocol meet them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from pi_session_mcp import __version__
from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.server.catalog import INSTRUCTIONS, TOOLS
from tests.support.served import ERAS, UNKNOWN, World, call, error, said, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with served() as made:
        yield made


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


async def test_the_client_learns_name_version_instructions_and_the_catalog_as_it_is(world: World, era: str) -> None:
    async with world.client(era) as client:
        tools = (await client.list_tools()).tools
        info = client.server_info
        instructions = client.instructions

    assert info is None or (info.name, info.version) == ("pi-session-mcp", __version__)
    assert instructions in ({INSTRUCTIONS, None} if era == "2026-07-28" else {INSTRUCTIONS})
    assert [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools] == list(TOOLS)


async def test_work_is_delegated_in_four_calls(world: World, era: str) -> None:
    async with world.client(era) as client, anyio.create_task_group() as tasks:
        capabilities = await call(client, "pi_capabilities_get")
        workspace = capabilities["workspaces"][0]["alias"]
        session = (await call(client, "pi_session_start", workspace=workspace))["session"]
        tasks.start_soon(_complete_when_waited_for, world, "It is a parser.")
        prompted = await call(client, "pi_session_prompt", sessionId=session["id"], prompt="What?", waitMs=50_000)
        closed = await call(client, "pi_session_close", sessionId=session["id"])

    assert prompted["turn"]["assistantText"] == "It is a parser."
    assert prompted["turn"]["sessionId"] == session["id"]
    assert prompted["session"] == {**session, "state": "idle", "latestTurnId": prompted["turn"]["turnId"]}
    assert closed["session"]["state"] == "closed"


async def _complete_when_waited_for(world: World, text: str) -> None:
    await world.registry.waiting.wait()
    world.complete(text)


async def test_every_tool_carries_what_it_promises_and_nothing_else(world: World, era: str) -> None:
    async with world.client(era) as client:
        session = (await call(client, "pi_session_start", workspace="docs"))["session"]["id"]
        prompted = await call(client, "pi_session_prompt", sessionId=session, prompt="look")
        listed = await call(client, "pi_session_list")
        read = await call(client, "pi_session_get", sessionId=session)
        turn = await call(client, "pi_turn_get", sessionId=session, turnId=prompted["turn"]["turnId"])
        aborted = await call(client, "pi_session_abort", sessionId=session)

    assert set(prompted) == {"ok", "session", "turn"}
    assert listed == {"ok": True, "sessions": [prompted["session"]]}
    assert read == {"ok": True, "session": prompted["session"]}
    assert turn == {"ok": True, "turn": prompted["turn"]}
    assert aborted == {"ok": True, "session": {**prompted["session"], "state": "idle"}}


async def test_a_tool_that_does_not_exist_is_a_protocol_error_that_repeats_nothing(world: World, era: str) -> None:
    async with world.client(era) as client:
        with pytest.raises(MCPError) as failed:
            await client.call_tool("pi_secret_get", {})

    assert failed.value.code == -32602
    assert "secret" not in failed.value.message
    assert world.said == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("pi_capabilities_get", {"verbose": True}),
        ("pi_session_start", {}),
        ("pi_session_list", {"cursor": "x"}),
        ("pi_session_get", {"sessionId": UNKNOWN + "\n"}),
        ("pi_session_prompt", {"sessionId": UNKNOWN, "prompt": ""}),
        ("pi_turn_get", {"sessionId": UNKNOWN, "turnId": UNKNOWN, "waitMs": 50_001}),
        ("pi_session_abort", {"sessionId": 1}),
        ("pi_session_close", {"id": UNKNOWN}),
    ],
)
async def test_arguments_are_refused_before_anything_happens(
    world: World, era: str, tool: str, arguments: dict[str, Any]
) -> None:
    async with world.client(era) as client:
        answer = await call(client, tool, **arguments)

    assert answer == error(Code.INVALID_ARGUMENTS)
    assert (world.registry.calls, world.said, world.warmed) == ([], [], 0)


async def test_arguments_may_be_left_out_where_there_are_none(world: World, era: str) -> None:
    async with world.client(era) as client:
        assert said("pi_session_list", await client.call_tool("pi_session_list")) == {"ok": True, "sessions": []}


REGISTRY_CALLS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("start", "pi_session_start", {"workspace": "docs"}),
    ("list", "pi_session_list", {}),
    ("get", "pi_session_get", {"sessionId": UNKNOWN}),
    ("prompt", "pi_session_prompt", {"sessionId": UNKNOWN, "prompt": "look"}),
    ("wait_turn", "pi_turn_get", {"sessionId": UNKNOWN, "turnId": UNKNOWN, "waitMs": 1}),
    ("turn", "pi_turn_get", {"sessionId": UNKNOWN, "turnId": UNKNOWN}),
    ("abort", "pi_session_abort", {"sessionId": UNKNOWN}),
    ("close", "pi_session_close", {"sessionId": UNKNOWN}),
]


@pytest.mark.parametrize(("method", "tool", "arguments"), REGISTRY_CALLS)
async def test_a_refusal_of_any_code_is_answered_with_its_fixed_message(
    world: World, method: str, tool: str, arguments: dict[str, Any]
) -> None:
    async with world.client("legacy") as client:
        for code in Code:
            world.registry.raises = {method: Refusal(code)}
            assert await call(client, tool, **arguments) == error(code)


@pytest.mark.parametrize(("method", "tool", "arguments"), REGISTRY_CALLS)
async def test_a_defect_is_an_internal_error_and_one_diagnostic_and_leaks_nothing(
    world: World, era: str, method: str, tool: str, arguments: dict[str, Any]
) -> None:
    world.registry.raises = {method: RuntimeError("/home/me/.pi/auth.json holds sk-123")}

    async with world.client(era) as client:
        answer = await call(client, tool, **arguments)

    assert answer == error(Code.INTERNAL_ERROR)
    (diagnostic,) = world.said
    assert json.loads(diagnostic.to_line()) == {
        "level": "error",
        "event": "internal_error",
        "code": "internal_error",
        "reason": tool,
    }


@pytest.mark.parametrize(("sent", "alias"), [({}, "safe"), ({"executionProfile": "coder"}, "coder")])
async def test_a_start_that_fails_in_pi_is_also_told_to_the_operator(
    world: World, sent: dict[str, str], alias: str
) -> None:
    world.registry.raises = {"start": Refusal(Code.MODEL_UNAVAILABLE, stage=Stage.AVAILABILITY)}

    async with world.client("legacy") as client:
        answer = await call(client, "pi_session_start", workspace="docs", **sent)

    assert answer == error(Code.MODEL_UNAVAILABLE)
    (diagnostic,) = world.said
    assert json.loads(diagnostic.to_line()) == {
        "level": "error",
        "event": "pi_session_creation_failed",
        "code": "model_unavailable",
        "stage": "availability",
        "profile": alias,
        "provider": "scripted",
        "model": f"{alias}-model",
        "thinkingLevel": "off",
    }


@pytest.mark.parametrize(
    "code",
    [
        Code.UNKNOWN_WORKSPACE,
        Code.UNKNOWN_EXECUTION_PROFILE,
        Code.SESSION_LIMIT_REACHED,
        Code.SERVER_STOPPING,
        Code.INTERNAL_ERROR,
    ],
)
async def test_a_start_that_never_reached_pi_or_was_reported_already_is_no_news_for_the_operator(
    world: World, code: Code
) -> None:
    world.registry.raises = {"start": Refusal(code)}

    async with world.client("legacy") as client:
        answer = await call(client, "pi_session_start", workspace="docs", executionProfile="../etc")

    assert answer == error(code)
    assert world.said == []


async def test_capabilities_are_the_loaded_aliases_and_intent_sorted_by_code_point(world: World, era: str) -> None:
    async with world.client(era) as client:
        answer = await call(client, "pi_capabilities_get")

    assert answer == {
        "ok": True,
        "server": {"name": "pi-session-mcp", "version": __version__},
        "configuration": {"fingerprint": "sha256:" + 64 * "a", "reloadPolicy": "restart-required"},
        "workspaces": [{"alias": "a-z"}, {"alias": "a0"}, {"alias": "a_b"}, {"alias": "docs"}],
        "executionProfiles": [
            {
                "alias": "coder",
                "default": False,
                "permissionProfile": "coding",
                "provider": "scripted",
                "model": "coder-model",
                "thinkingLevel": "off",
                "extensions": ["npm:@scope/tool@1.2.3", "npm:other@0.1.0"],
            },
            {
                "alias": "safe",
                "default": True,
                "permissionProfile": "read-only",
                "provider": "scripted",
                "model": "safe-model",
                "thinkingLevel": "off",
                "extensions": [],
            },
        ],
    }


async def test_capabilities_ask_nothing_of_the_registry_and_announce_that_a_start_may_follow(world: World) -> None:
    async with world.client("legacy") as client:
        await call(client, "pi_capabilities_get")
        await call(client, "pi_capabilities_get")

    assert world.registry.calls == []
    assert world.warmed == 2
