"""The tools, as the demonstration's client calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.demo.steps import NotSeen, require
from pi_session_mcp.errors import MESSAGES, Code
from pi_session_mcp.runtime.problem import REMEDIATIONS, RuntimeCode

if TYPE_CHECKING:
    from mcp.client import Client


@dataclass(frozen=True, slots=True)
class Turn:
    """One look at a turn."""

    id: str
    state: str
    answer: str
    finish: str


class Tools:
    """The eight tools over one connection. Each method raises `NotSeen` when the call is answered with an error."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def capabilities(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Aliases of the workspaces and of the execution profiles."""
        told = await self._call("pi_capabilities_get")
        return _aliases(told["workspaces"]), _aliases(told["executionProfiles"])

    async def start(self, workspace: str, profile: str) -> str:
        """Start a session; its id."""
        told = await self._call("pi_session_start", workspace=workspace, executionProfile=profile)
        return str(told["session"]["id"])

    async def session(self, session: str) -> dict[str, str]:
        """Read one session."""
        view: dict[str, str] = (await self._call("pi_session_get", sessionId=session))["session"]
        return view

    async def open_sessions(self) -> frozenset[str]:
        """Ids of the open sessions."""
        return frozenset(view["id"] for view in (await self._call("pi_session_list"))["sessions"])

    async def prompt(self, session: str, prompt: str, *, wait_ms: int = round(DEADLINES.call_wait_s * 1000)) -> Turn:
        """Start a turn and wait until it ends or the time has passed."""
        return _turn(await self._call("pi_session_prompt", sessionId=session, prompt=prompt, waitMs=wait_ms))

    async def turn(self, session: str, turn: str) -> Turn:
        """Read one turn."""
        return _turn(await self._call("pi_turn_get", sessionId=session, turnId=turn))

    async def abort(self, session: str) -> str:
        """Abort the running turn; the session's state afterwards."""
        return str((await self._call("pi_session_abort", sessionId=session))["session"]["state"])

    async def close(self, session: str) -> str:
        """Close the session; its state afterwards."""
        return str((await self._call("pi_session_close", sessionId=session))["session"]["state"])

    async def _call(self, tool: str, **arguments: object) -> dict[str, Any]:
        try:
            told: dict[str, Any] = (await self._client.call_tool(tool, arguments)).structured_content or {}
        except MCPError:
            told = {}
        if told.get("ok") is not True:
            raise NotSeen(*_refusal(tool, str(told.get("error", {}).get("code"))))
        return told


def completed(turn: Turn) -> str:
    """The answer of a completed turn. Raises `NotSeen` if the turn is in another state or its answer was cut."""
    require(turn.state == "completed", f"The turn is {turn.state}, not completed.")
    require(turn.finish == "complete", "The answer is not complete.")
    return turn.answer


def _refusal(tool: str, code: str) -> tuple[str, ...]:
    """Our own words for an error: its code, and our message for that code. The server's text is not repeated."""
    if code not in set(Code):
        return (f"{tool} was not answered as it should be.",)
    told = (f"{tool}: {code} ({MESSAGES[Code(code)]})",)
    if code == Code.PI_RUNTIME_UNAVAILABLE:
        return (*told, str(REMEDIATIONS[RuntimeCode.PI_RUNTIME_MISSING]))
    return told


def _aliases(entries: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(str(entry["alias"]) for entry in entries)


def _turn(told: dict[str, Any]) -> Turn:
    turn = told["turn"]
    return Turn(
        str(turn["turnId"]), str(turn["state"]), str(turn.get("assistantText", "")), str(turn.get("finish", ""))
    )
