"""`pi-session-mcp runtime install` and `runtime status`: the Node and the Pi SDK that sessions run on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import typer

from pi_session_mcp.cli import operator_file
from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Block, Command, Facts, Line, Mark, Outcome, Say, Show
from pi_session_mcp.platform.paths import working_directory

if TYPE_CHECKING:
    from pi_session_mcp.runtime.overrides import Asked
    from pi_session_mcp.runtime.result import InstallResult, Progress, Watcher
    from pi_session_mcp.runtime.status import Part, Status

HELP: Final = """Install the pinned Pi SDK, or look for it.

\b
Example:
  pi-session-mcp runtime status
"""

_INSTALL_HELP: Final = """Install the pinned Pi SDK and ripgrep.

They come from the package registry, with npm's integrity checks and without install scripts, and are put beside this
program. An install that fails or is interrupted changes nothing.

\b
Example:
  pi-session-mcp runtime install
"""

_STATUS_HELP: Final = """Say which Node and Pi SDK would be used.

The exit status is 2 when sessions could not start with them. If there is a configuration, its entries for the
runtime count.

\b
Example:
  pi-session-mcp runtime status
"""

_PHASES: Final = {
    "checking": "Looking for Node and an earlier install",
    "fetching": "Fetching the Pi SDK from the package registry",
    "verifying": "Checking what was installed",
}
_DONE: Final = {
    "installed": "The pinned Pi SDK was installed.",
    "already_installed": "The pinned Pi SDK is installed already.",
}


def group(app: typer.Typer) -> typer.Typer:
    """`app` with this group's commands."""
    app.command("install", help=_INSTALL_HELP)(install)
    app.command("status", help=_STATUS_HELP)(status)
    return app


def install(*, _json: JsonOption = False) -> Command:
    """The parsed command."""
    return _install


def status(*, _json: JsonOption = False) -> Command:
    """The parsed command."""
    return _status


def _install(show: Show) -> Answer:
    from pi_session_mcp.runtime.install import Installer
    from pi_session_mcp.runtime.install import install as run
    from pi_session_mcp.runtime.overrides import untrusted_directories

    asked = _asked()
    if isinstance(asked, Outcome):
        return asked
    with show.working(_PHASES["checking"]) as say:
        untrusted = tuple(untrusted_directories(asked, working_directory()))
        result = run(Installer(environ=os.environ, untrusted=untrusted, watch=_watcher(say)))
    return _installed(result)


def _status(show: Show) -> Answer:
    from pi_session_mcp.runtime.status import status as look

    asked = _asked()
    if isinstance(asked, Outcome):
        return asked
    with show.working("Looking for Node and the Pi SDK"):
        seen = look(asked, os.environ, working_directory())
    return _seen(seen)


def _asked() -> Asked | Outcome:
    """What the configuration says about the runtime: nothing if there is none. If it is invalid, its refusal."""
    from pi_session_mcp.runtime.overrides import NothingAsked

    seen = operator_file.read_if_any()
    if seen is None or isinstance(seen, Outcome):
        return seen or NothingAsked()
    return seen.configuration


def _watcher(say: Say) -> Watcher:
    def watch(progress: Progress) -> None:
        share = f" ({min(progress.done, progress.expected)} of {progress.expected})" if progress.expected else ""
        say(_PHASES[progress.phase.value] + share)

    return watch


def _installed(result: InstallResult) -> Outcome:
    word = result.code.value
    line = Line(Mark.OK, "ok", _DONE[word]) if result.ok else Line(Mark.FAILED, "failed", word)
    versions = (("Node", result.node_version), ("Pi SDK", result.sdk_version))
    following = (("next", "Run `pi-session-mcp doctor`."),) if result.ok else ()
    rows = (*((name, version) for name, version in versions if version is not None), *following)
    return Outcome(result.exit_status, result.members(), _blocks(line, rows, result.remediation))


def _seen(seen: Status) -> Outcome:
    mark = Mark.FAILED if not seen.ok else Mark.WARNING if seen.remediation else Mark.OK
    line = Line(mark, mark.value, "Sessions can start." if mark is Mark.OK else seen.code.value)
    rows = (("Node", _part(seen.node)), ("Pi SDK", _part(seen.sdk)))
    return Outcome(seen.exit_status, seen.members(), _blocks(line, rows, seen.remediation))


def _part(part: Part) -> str:
    version = part.version or "no version"
    source = f", from: {part.source.value}" if part.source is not None else ""
    return f"{version}{source}, {part.code.value}"


def _blocks(line: Line, rows: tuple[tuple[str, str], ...], remediation: str | None) -> tuple[Block, ...]:
    told = (*rows, ("do", remediation)) if remediation is not None else rows
    return (line, Facts(told)) if told else (line,)
