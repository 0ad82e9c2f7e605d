"""Every client that has an adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_session_mcp.setup.clients.claude_code import ClaudeCode
from pi_session_mcp.setup.clients.codex import Codex
from pi_session_mcp.setup.clients.copilot import Copilot

if TYPE_CHECKING:
    from pi_session_mcp.setup.clients.base import AskedFrom, Client


def client_named(name: str, asked_from: AskedFrom) -> Client:
    """The adapter that a target's first word names."""
    match name:
        case "claude-code":
            return ClaudeCode(asked_from)
        case "codex":
            return Codex(asked_from)
        case "copilot":
            return Copilot(asked_from)
        case _:
            raise AssertionError("targets name known clients only")
