"""The MCP server over a registry in memory, spoken to by the SDK's own client, for the tests of the server."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import anyio
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp_types import CallToolResult, TextContent

from pi_session_mcp.config.model import Configuration, ExecutionProfile, RuntimeOverride
from pi_session_mcp.errors import MESSAGES, Code, Refusal
from pi_session_mcp.server.catalog import TOOLS
from pi_session_mcp.server.tool_calls import ToolCalls
from pi_session_mcp.sessions.answer import Answer
from pi_session_mcp.sessions.state import SessionState, TurnState, finish_of
from pi_session_mcp.sessions.views import SessionView, TurnView
from tests.support.piped import client_streams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pi_session_mcp.diagnostics import Diagnostic, Report
    from pi_session_mcp.server.tool_calls import OnProgress, Sessions

ERAS: Final = ("legacy", "auto", "2026-07-28")
"""How a client may open: the handshake, a probe that finds the newer protocol, the newer protocol outright."""

UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
_SCHEMAS: Final = {tool["name"]: Draft202012Validator(tool["outputSchema"]) for tool in TOOLS}
_NOW: Final = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)


@dataclass
class Memory:
    """A registry in memory whose turns end when the test says so."""

    sessions: dict[str, SessionView] = field(default_factory=dict)
    turns: dict[str, TurnView] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    raises: dict[str, Exception] = field(default_factory=dict)
    waits: list[tuple[float, bool]] = field(default_factory=list)
    stopping: bool = False
    signs_of_life: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    waiting: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)

    def _enter(self, method: str) -> None:
        self.calls.append(method)
        if method in self.raises:
            raise self.raises[method]

    async def start(self, workspace: str, profile: str | None) -> SessionView:
        self._enter("start")
        session = SessionView(
            id=str(uuid4()),
            workspace=workspace,
            execution_profile=profile or "safe",
            permission_profile="read-only",
            provider="scripted",
            model="scripted-1",
            thinking_level="off",
            state=SessionState.IDLE,
            created_at=_NOW,
            updated_at=_NOW,
        )
        self.sessions[session.id] = session
        return session

    def list(self) -> tuple[SessionView, ...]:
        self._enter("list")
        return tuple(self.sessions.values())

    def get(self, session_id: str) -> SessionView:
        self._enter("get")
        if session_id not in self.sessions:
            raise Refusal(Code.SERVER_STOPPING if self.stopping else Code.UNKNOWN_SESSION)
        return self.sessions[session_id]

    async def prompt(self, session_id: str, text: str) -> tuple[SessionView, TurnView]:
        self._enter("prompt")
        turn = TurnView(
            turn_id=str(uuid4()), session_id=session_id, state=TurnState.RUNNING, started_at=_NOW, updated_at=_NOW
        )
        self.turns[turn.turn_id] = turn
        self.become(session_id, SessionState.RUNNING, latest_turn_id=turn.turn_id)
        return self.sessions[session_id], turn

    async def wait_turn(
        self, session_id: str, turn_id: str, *, timeout_s: float, on_progress: OnProgress | None
    ) -> TurnView:
        self._enter("wait_turn")
        self.waits.append((timeout_s, on_progress is not None))
        try:
            with anyio.move_on_after(timeout_s):
                while self.turns[turn_id].state is TurnState.RUNNING:
                    self.waiting.set()
                    await self.changed.wait()
                    if on_progress is not None and self.turns[turn_id].state is TurnState.RUNNING:
                        await on_progress(self.signs_of_life)
        finally:
            self.left.set()
        return self.turns[turn_id]

    def turn(self, session_id: str, turn_id: str) -> TurnView:
        self._enter("turn")
        if turn_id not in self.turns:
            raise Refusal(Code.UNKNOWN_TURN)
        return self.turns[turn_id]

    async def abort(self, session_id: str) -> SessionView:
        self._enter("abort")
        self.become(session_id, SessionState.IDLE)
        return self.sessions[session_id]

    async def close(self, session_id: str) -> SessionView:
        self._enter("close")
        self.become(session_id, SessionState.CLOSED)
        return self.sessions.pop(session_id)

    def complete(self, text: str) -> None:
        """Every running turn ends with this answer."""
        for turn in list(self.turns.values()):
            answer = Answer(text, truncated=False)
            finish = finish_of("stop", has_text=text != "")
            ended = replace(turn, state=TurnState.COMPLETED, completed_at=_NOW, answer=answer, finish=finish)
            self.turns[turn.turn_id] = ended
            self.become(turn.session_id, SessionState.IDLE)
        self._tell()

    def live(self) -> None:
        """Every running turn shows a sign of life."""
        self.signs_of_life += 1
        self._tell()

    def become(self, session_id: str, state: SessionState, **fields: Any) -> None:
        self.sessions[session_id] = replace(self.sessions[session_id], state=state, **fields)

    def _tell(self) -> None:
        changed, self.changed = self.changed, anyio.Event()
        changed.set()


@dataclass
class World:
    """The server's surroundings, as a test sees them."""

    registry: Memory = field(default_factory=Memory)
    said: list[Diagnostic] = field(default_factory=list)
    warmed: int = 0

    def warm(self) -> None:
        self.warmed += 1

    @asynccontextmanager
    async def client(self, era: str) -> AsyncIterator[Client]:
        """A client that has shaken hands with the server."""
        async with connected(self.registry, configured(), self.said.append, self.warm, era=era) as client:
            yield client


@asynccontextmanager
async def connected(
    registry: Sessions,
    configuration: Configuration,
    report: Report,
    on_capabilities: Callable[[], None] = lambda: None,
    *,
    era: str = "legacy",
) -> AsyncIterator[Client]:
    """A client of the tools over `registry`, joined by pipes."""
    tools = ToolCalls(registry, configuration, report, on_capabilities)
    async with client_streams(tools) as streams, Client(_joined(streams), mode=era) as client:
        yield client


@asynccontextmanager
async def _joined(streams: Any) -> AsyncIterator[Any]:
    yield streams


def configured() -> Configuration:
    """Two profiles and four workspaces, in no order."""
    pins = ("npm:@scope/tool@1.2.3", "npm:other@0.1.0")
    return Configuration(
        workspaces=dict.fromkeys(["docs", "a_b", "a0", "a-z"], Path("/nowhere")),
        execution_profiles={
            "safe": _profile("safe", default=True, permission_profile="read-only"),
            "coder": _profile("coder", permission_profile="coding", extensions=pins),
        },
        max_sessions=2,
        pi_agent_directory=None,
        runtime=RuntimeOverride(),
        fingerprint="sha256:" + 64 * "a",
    )


def _profile(alias: str, **fields: Any) -> ExecutionProfile:
    return ExecutionProfile(provider="scripted", model=f"{alias}-model", thinking_level="off", **fields)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The object that a call is answered with, after checking that it is said twice and as promised."""
    result = await client.call_tool(tool, arguments)
    return said(tool, result)


def said(tool: str, result: CallToolResult) -> dict[str, Any]:
    (block,) = result.content
    assert isinstance(block, TextContent)
    answer = json.loads(block.text)
    assert answer == result.structured_content
    assert answer["ok"] is not result.is_error
    _SCHEMAS[tool].validate(answer)
    return cast("dict[str, Any]", answer)


def error(code: Code) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code.value, "message": MESSAGES[code]}}
