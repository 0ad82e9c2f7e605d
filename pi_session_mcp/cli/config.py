"""`pi-session-mcp config check` and `config schema`; `config init` has a module of its own."""

from __future__ import annotations

from typing import Final

import typer

from pi_session_mcp.cli import operator_file
from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Command, Document, Facts, Line, Mark, Outcome, Show
from pi_session_mcp.errors import ExitStatus

HELP: Final = """Write, check or explain the configuration.

\b
Example:
  pi-session-mcp config init
"""

_CHECK_HELP: Final = """Check the configuration and start nothing.

The file is named by PI_SESSION_MCP_CONFIG (a relative path counts from the current directory), or else the one at the
default place, ~/.config/pi-session-mcp/config.json. A refusal names the place in the file and the rule that is
broken, never a value. The exit status is 2 when the file is refused.

\b
Example:
  pi-session-mcp config check
"""

_SCHEMA_HELP: Final = """Print the configuration's JSON Schema.

Editors use it to complete and check the file.

\b
Example:
  pi-session-mcp config schema
"""


def group(app: typer.Typer) -> typer.Typer:
    """`app` with the commands of this module."""
    app.command("check", help=_CHECK_HELP)(check)
    app.command("schema", help=_SCHEMA_HELP)(schema)
    return app


def check(*, _json: JsonOption = False) -> Command:
    """The parsed command."""
    return _check


def schema() -> Command:
    """The parsed command."""
    return _schema


def _check(_show: Show) -> Answer:
    seen = operator_file.read()
    if isinstance(seen, Outcome):
        return seen
    fingerprint = seen.configuration.fingerprint
    rows = (("fingerprint", fingerprint), ("read from", seen.source.words))
    blocks = (Line(Mark.OK, "valid", "The configuration is valid."), Facts(rows))
    return Outcome(ExitStatus.OK, {"fingerprint": fingerprint, **seen.source.members("source")}, blocks)


def _schema(_show: Show) -> Answer:
    from pi_session_mcp.config.schema import load_text

    return Document(load_text(), "schema", ExitStatus.OK)
