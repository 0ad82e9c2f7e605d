"""A verification believes nothing but what the server's own schema allows, and ends what it started."""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp import __version__
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.server.catalog import TOOLS
from pi_session_mcp.setup.registration import Registration
from pi_session_mcp.setup.result import SetupCode, Stopped
from pi_session_mcp.setup.verify import Handshake, answers_by_its_own_schema, is_our_server, verify

if TYPE_CHECKING:
    from pathlib import Path

NAMES = frozenset(str(tool["name"]) for tool in TOOLS)
TOLD: dict[str, Any] = {
    "ok": True,
    "server": {"name": "pi-session-mcp", "version": __version__},
    "configuration": {"fingerprint": f"sha256:{'0' * 64}", "reloadPolicy": "restart-required"},
    "workspaces": [{"alias": "here"}],
    "executionProfiles": [],
}
LISTED: dict[str, Any] = {"tools": [dict(tool) for tool in TOOLS]}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "pi-session-mcp", "version": __version__},
}


def answer(told: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told, "isError": False}


def test_a_good_answer_is_good() -> None:
    assert is_our_server(HELLO)
    assert answers_by_its_own_schema(LISTED, answer(TOLD), NAMES)


@pytest.mark.parametrize(
    "change",
    [
        {"ok": False},
        {"more": 1},
        {"workspaces": [{"alias": "here", "path": "/x"}]},
        {"workspaces": "here"},
        {"configuration": {"fingerprint": "sha256:0", "reloadPolicy": "restart-required"}},
        {"server": {"name": "pi-session-mcp"}},
        {"error": {"code": "x", "message": "y"}},
    ],
    ids=str,
)
def test_every_field_is_held_to_the_schema(change: dict[str, Any]) -> None:
    assert not answers_by_its_own_schema(LISTED, answer({**TOLD, **change}), NAMES)


@pytest.mark.parametrize("field", [name for name in TOLD if name != "ok"])
def test_no_field_may_be_missing(field: str) -> None:
    told = {name: value for name, value in TOLD.items() if name != field}
    assert not answers_by_its_own_schema(LISTED, answer(told), NAMES)


def test_a_field_that_the_server_adds_to_its_schema_is_no_fault() -> None:
    listed = deepcopy(LISTED)
    listed["tools"][0]["outputSchema"]["properties"]["later"] = {"type": "string"}
    assert answers_by_its_own_schema(listed, answer({**TOLD, "later": "x"}), NAMES)
    assert not answers_by_its_own_schema(listed, answer({**TOLD, "later": 1}), NAMES)


@pytest.mark.parametrize("tools", [TOOLS[:-1], (*TOOLS, {"name": "more"}), (*TOOLS, TOOLS[0]), ("pi_turn_get",), "x"])
def test_exactly_our_tools_must_be_offered(tools: Any) -> None:
    listed = {"tools": list(tools) if isinstance(tools, tuple) else tools}
    assert not answers_by_its_own_schema(listed, answer(TOLD), NAMES)


def test_both_forms_of_an_answer_must_say_the_same() -> None:
    two_faced = {**answer(TOLD), "content": [{"type": "text", "text": "{}"}]}
    assert not answers_by_its_own_schema(LISTED, two_faced, NAMES)


@pytest.mark.parametrize(
    "change",
    [{"protocolVersion": "2024-01-01"}, {"capabilities": {}}, {"serverInfo": {"name": "x", "version": __version__}}],
    ids=str,
)
def test_another_server_is_not_ours(change: dict[str, Any]) -> None:
    assert not is_our_server({**HELLO, **change})


SERVER = """
import json, sys
hello, listed, answer = (json.loads(text) for text in sys.argv[1:4])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = {"initialize": hello, "tools/list": listed, "tools/call": answer}[asked["method"]]
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def handshake(script: str, directory: Path, within_s: float = 60.0) -> Handshake:
    words = ("-I", "-c", script, *map(json.dumps, (HELLO, LISTED, answer(TOLD))))
    return Handshake(
        registration=Registration(sys.executable, words, {}),
        environ={"PATH": "/usr/bin:/bin"},
        directory=directory,
        tools=NAMES,
        deadlines=Deadlines(verify_s=within_s),
    )


@pytest.mark.anyio
async def test_a_server_that_answers_well_is_verified(tmp_path: Path) -> None:
    await verify(handshake(SERVER, tmp_path))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "within_s", "code"),
    [
        ("import time; time.sleep(1000)", 1.0, SetupCode.MCP_TIMEOUT),
        ("", 60.0, SetupCode.MCP_FAILED),
        ("print('no JSON', flush=True); input()", 60.0, SetupCode.MCP_FAILED),
        ("print('[]', flush=True); input()", 60.0, SetupCode.MCP_FAILED),
        ("""print('{"id": 7, "result": {}}', flush=True); input()""", 60.0, SetupCode.MCP_FAILED),
        ("import sys; sys.stdout.write('x' * 5_000_000); sys.stdout.flush(); input()", 60.0, SetupCode.MCP_FAILED),
        (SERVER.replace('"initialize": hello', '"initialize": {}'), 60.0, SetupCode.MCP_UNSUPPORTED),
        (SERVER + "sys.exit(3)", 60.0, SetupCode.MCP_FAILED),
    ],
    ids=["silent", "gone", "text", "array", "other id", "flood", "other server", "bad end"],
)
async def test_a_server_that_does_not_is_told_from_one_that_does(
    tmp_path: Path, script: str, within_s: float, code: SetupCode
) -> None:
    with pytest.raises(Stopped) as stopped:
        await verify(handshake(script, tmp_path, within_s))
    assert stopped.value.code is code


@pytest.mark.anyio
async def test_a_command_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    missing = Handshake(
        registration=Registration("/does/not/exist", ("serve",), {}), environ={}, directory=tmp_path, tools=NAMES
    )
    with pytest.raises(Stopped) as stopped:
        await verify(missing)
    assert stopped.value.code is SetupCode.MCP_FAILED
