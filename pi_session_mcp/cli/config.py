"""`pi-session-mcp config`: the operator's file, its place of error and its rules. `config init` has its own module."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from pi_session_mcp.cli import config_init
from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Command, Document, Facts, Line, Mark, Outcome, Show
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from pi_session_mcp.config.errors import ConfigError

VARIABLE: Final = "PI_SESSION_MCP_CONFIG"

HELP: Final = """Write, check or explain the configuration.

\b
Example:
  pi-session-mcp config init
"""

_CHECK_HELP: Final = """Check the configuration and start nothing.

The file is the one that PI_SESSION_MCP_CONFIG names; a relative path is taken from the current directory. An error
names its place in the file and the rule that it breaks, never a value. The exit status is 2 when the file is refused.

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
    """`app` with this group's commands."""
    app.command("init", help=config_init.HELP)(config_init.init)
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
    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.config.load import config_path_for_operator, load

    try:
        configuration = load(config_path_for_operator(os.environ, Path.cwd()))
    except ConfigError as refused:
        return refusal(refused)
    fingerprint = configuration.fingerprint
    blocks = (Line(Mark.OK, "valid", "The configuration is valid."), Facts((("fingerprint", fingerprint),)))
    return Outcome(ExitStatus.OK, {"fingerprint": fingerprint}, blocks)


def refusal(refused: ConfigError) -> Outcome:
    """The outcome of any command that could not load the configuration: code, place and rule, never a value."""
    report = refused.to_report()
    place = () if report.get("pointer") == "" else (("place", refused.place),)
    blocks = (Line(Mark.FAILED, "invalid", refused.code.value), Facts((*place, ("rule", refused.rule))))
    return Outcome(ExitStatus.CHECK_FAILED, report, blocks)


def _schema(_show: Show) -> Answer:
    from pi_session_mcp.config.schema import load_text

    return Document(load_text(), "schema", ExitStatus.OK)
