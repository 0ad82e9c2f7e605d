"""`pi-session-mcp serve`: the MCP server, for clients.

For a client the program starts the server before it imports any of this. This module has the help text, and starts
the same server when the command is spelt in another way.
"""

from __future__ import annotations

from typing import Final, NoReturn

from pi_session_mcp.cli.outcome import Command, Show

HELP: Final = """Run the MCP server on standard input and output.

A client such as Claude Code or Codex starts this command; people rarely do. The configuration is the absolute path in
PI_SESSION_MCP_CONFIG. Standard output carries MCP messages only.

\b
Example:
  pi-session-mcp serve
"""


def serve() -> Command:
    """The parsed command."""
    return _run


def _run(_show: Show) -> NoReturn:
    from pi_session_mcp.server.main import run

    run()
