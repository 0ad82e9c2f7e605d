"""Every client that has an adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_session_mcp.setup.clients.claude_code import ClaudeCode
from pi_session_mcp.setup.clients.codex import Codex
from pi_session_mcp.setup.clients.copilot import Copilot

if TYPE_CHECKING:
    from pi_session_mcp.setup.clients.base import Client, Surroundings


def client_named(name: str, surroundings: Surroundings) -> Client:
    """The adapter that a target's first word names."""
    match name:
        case "claude-code":
            return ClaudeCode(surroundings)
        case "codex":
            return Codex(surroundings)
        case "copilot":
            return Copilot(surroundings)
        case _:
            raise AssertionError("targets name known clients only")
