"""`pi-session-mcp doctor`: what is wrong with this installation."""

from __future__ import annotations

from typing import Final

from pi_session_mcp.cli.doctor_report import examine
from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Command

HELP: Final = """Find what is wrong with this installation.

The check is offline: it connects to nothing, and writes and repairs nothing. It starts only Node, to ask what Pi says
of its files and of your profiles. Each finding comes with a remedy. The exit status is 0 when all is well, 1 when there
are warnings only, and 2 when there is an error.

\b
Example:
  pi-session-mcp doctor
"""


def doctor(*, _json: JsonOption = False) -> Command:
    """The parsed command."""
    return examine
