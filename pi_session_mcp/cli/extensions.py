"""`pi-session-mcp extensions check`: compares the pins of the configuration with what Pi has installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import typer

from pi_session_mcp.cli import operator_file
from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Block, Command, Facts, Json, Line, Mark, Outcome, Show
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.paths import working_directory

if TYPE_CHECKING:
    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.extensions.check import Finding

HELP: Final = """Check the Pi extensions that the configuration pins.

\b
Example:
  pi-session-mcp extensions check
"""

_CHECK_HELP: Final = """Check that every pinned Pi extension is installed as pinned.

Only files are read: nothing is run, installed or fetched. The exit status is 2 when an extension of any profile is not
installed, has another version or cannot be loaded from its files: a session of that profile would be refused with the
same code. It is 1 when nothing was found but a dependency that is missing or linked in from elsewhere.

\b
Example:
  pi-session-mcp extensions check
"""


def group(app: typer.Typer) -> typer.Typer:
    """`app` with this group's commands."""
    app.callback()(_extensions)
    app.command("check", help=_CHECK_HELP)(check)
    return app


def check(*, _json: JsonOption = False) -> Command:
    """The parsed command."""
    return _check


def _extensions() -> None:
    """With this callback Typer keeps `extensions` a group, although it has only one command."""


def _check(_show: Show) -> Answer:
    seen = operator_file.read()
    return seen if isinstance(seen, Outcome) else _checked(seen.configuration)


def _checked(configuration: Configuration) -> Outcome:
    from pi_session_mcp.errors import Refusal
    from pi_session_mcp.extensions.check import check as look
    from pi_session_mcp.runtime.agent_directory import agent_directory

    if not any(profile.extensions for profile in configuration.execution_profiles.values()):
        return _found(())
    try:
        place = agent_directory(configuration, os.environ, working_directory())
    except Refusal as no_home:
        blocks = (Line(Mark.FAILED, "failed", no_home.code.value), Facts((("do", _NO_HOME),)))
        return Outcome(ExitStatus.CHECK_FAILED, {"code": no_home.code.value, "remediation": _NO_HOME}, blocks)
    return _found(look(configuration, place))


_NO_HOME: Final = "Set HOME, or piAgentDirectory in the configuration."


def _found(findings: tuple[Finding, ...]) -> Outcome:
    members: list[Json] = [_member(one) for one in findings]
    blocks = tuple(block for one in findings for block in _blocks(one))
    return Outcome(
        _status(findings),
        {"extensions": members},
        blocks or (Line(Mark.NOTE, "none", "No profile pins an extension."),),
    )


def _status(findings: tuple[Finding, ...]) -> ExitStatus:
    if any(one.fault is not None for one in findings):
        return ExitStatus.CHECK_FAILED
    return ExitStatus.FAILURE if any(one.condition is not None for one in findings) else ExitStatus.OK


def _member(one: Finding) -> dict[str, Json]:
    said: dict[str, Json] = {
        "profile": one.profile,
        "name": one.pin.name,
        "version": one.pin.version,
        "status": one.status,
    }
    if one.reason is not None:
        said["reason"] = one.reason
    if one.remediation is not None:
        said["remediation"] = one.remediation
    return said


def _blocks(one: Finding) -> tuple[Block, ...]:
    subject = f"{one.profile}: {one.pin}"
    if one.remediation is None:
        return (Line(Mark.OK, "ok", subject),)
    mark, word = (Mark.WARNING, "warning") if one.fault is None else (Mark.FAILED, "failed")
    said = " ".join(word for word in (one.status if one.fault else None, one.reason) if word)
    return (Line(mark, word, f"{subject} {said}"), Facts((("do", one.remediation),)))
