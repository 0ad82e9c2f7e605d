"""The MCP server over the registry and Pi in memory, spoken to by the SDK's own client, for the tests of the server."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp_types import CallToolResult, TextContent

from pi_session_mcp.config.model import Configuration, ExecutionProfile, RuntimeOverride
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import MESSAGES, Code
from pi_session_mcp.server.catalog import TOOLS
from pi_session_mcp.server.tool_calls import ToolCalls
from pi_session_mcp.sessions.outcome import outcome_of
from pi_session_mcp.sessions.registry import Registry
from tests.fakes.pi import FakePi
from tests.support.piped import client_streams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pi_session_mcp.diagnostics import Diagnostic, Report
    from pi_session_mcp.sessions.turn import OnProgress
    from pi_session_mcp.sessions.views import TurnView

ERAS: Final = ("legacy", "auto", "2026-07-28")
"""How a client may open: the handshake, a probe that finds the newer protocol, the newer protocol outright."""

UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
_SCHEMAS: Final = {tool["name"]: Draft202012Validator(tool["outputSchema"]) for tool in TOOLS}
_NOW: Final = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
_METHODS: Final = {"start", "list", "get", "prompt", "wait_turn", "turn", "abort", "close"}


class Watched(Registry):
    """A registry that notes which calls reach it, and can be made to raise."""

    def __init__(self, configuration: Configuration, pi: FakePi, report: Report) -> None:
        deadlines = Deadlines(progress_interval_s=0.05)
        super().__init__(configuration, pi, report=report, deadlines=deadlines, wall=lambda: _NOW)
        self.calls: list[str] = []
        self.raises: dict[str, Exception] = {}
        self.waits: list[tuple[float, bool]] = []
        self.waiting = anyio.Event()
        self.left = anyio.Event()

    def __getattribute__(self, name: str) -> Any:
        if name in _METHODS:
            self.calls.append(name)
            if name in self.raises:
                raise self.raises[name]
        return super().__getattribute__(name)

    async def wait_turn(
        self, session_id: str, turn_id: str, *, timeout_s: float, on_progress: OnProgress | None = None
    ) -> TurnView:
        self.waits.append((timeout_s, on_progress is not None))
        self.waiting.set()
        try:
            return await super().wait_turn(session_id, turn_id, timeout_s=timeout_s, on_progress=on_progress)
        finally:
            self.left.set()


@dataclass
class World:
    """The server's asked_from, as a test sees them."""

    pi: FakePi
    registry: Watched
    said: list[Diagnostic] = field(default_factory=list)
    warmed: int = 0

    def warm(self) -> None:
        self.warmed += 1

    def complete(self, text: str) -> None:
        """The latest session's turn ends with this answer."""
        self.pi.sessions[-1].finish(outcome_of("stop", aborted=False, text=text))

    def live(self) -> None:
        """The latest session's turn shows a sign of life."""
        self.pi.sessions[-1].sign()

    @asynccontextmanager
    async def client(self, era: str) -> AsyncIterator[Client]:
        """A client that has shaken hands with the server."""
        async with connected(self.registry, configured(), self.said.append, self.warm, era=era) as client:
            yield client


@asynccontextmanager
async def served() -> AsyncIterator[World]:
    """A registry over Pi in memory, which closes its sessions at the end."""
    pi = FakePi()
    said: list[Diagnostic] = []
    async with Watched(configured(), pi, said.append) as registry:
        yield World(pi, registry, said)


@asynccontextmanager
async def connected(
    registry: Registry,
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
