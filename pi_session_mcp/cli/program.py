"""The command line's grammar, with Typer: from arguments to a command that has not run yet.

Typer only parses here. What it would print is caught and becomes a `Document`, what it would raise becomes a
`Misuse`, so that one place decides about streams, exit statuses and JSON.
"""

from __future__ import annotations

import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pi_session_mcp import __version__
from pi_session_mcp.cli import config, demo, doctor, extensions, runtime, serve, setup
from pi_session_mcp.cli.outcome import Answer, Command, Document, Misuse, Show
from pi_session_mcp.cli.streams import MAX_COLUMNS, MIN_COLUMNS
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "pi-session-mcp"

_HELP: Final = """Hand bounded work from a coding agent to sessions of the Pi coding agent.

The operator writes down the workspaces, models and permissions in one JSON file, and the agent can change none of it.

\b
Example:
  pi-session-mcp demo
"""


def new_app(help_text: str) -> typer.Typer:
    """A Typer application or group with this program's settings."""
    return typer.Typer(
        help=help_text,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
    )


def build() -> typer.Typer:
    """The whole command line; each command is in a module of its own."""
    app = new_app(_HELP)
    app.callback()(_root)
    app.command("serve", help=serve.HELP)(serve.serve)
    app.command("doctor", help=doctor.HELP)(doctor.doctor)
    app.add_typer(runtime.group(new_app(runtime.HELP)), name="runtime")
    app.add_typer(config.group(new_app(config.HELP)), name="config")
    app.add_typer(extensions.group(new_app(extensions.HELP)), name="extensions")
    app.command("setup", help=setup.HELP)(setup.setup)
    app.command("demo", help=demo.HELP)(demo.demo)
    return app


def parse(arguments: Sequence[str]) -> Command:
    """The command that `arguments` stand for; a misunderstanding is a command as well, which answers `Misuse`."""
    if _DOCUMENTS.intersection(arguments):
        # Every command explains itself in a report as well, also where `--json` is no option of its own.
        arguments = [argument for argument in arguments if argument != "--json"]
    said, complaints = StringIO(), StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(complaints):
            parsed: Any = build()(
                list(arguments), prog_name=PROGRAM, standalone_mode=False, terminal_width=_help_columns()
            )
    except typer.TyperException as misunderstood:
        return _always(_misuse(misunderstood))
    except SystemExit as ended:
        parsed = ended.code
    if callable(parsed):
        return _as_command(parsed)
    if not parsed:
        return _always(_document(said.getvalue(), arguments))
    return _always(Misuse("This shell cannot be completed for; name one of those below.", _SHELLS))


_DOCUMENTS: Final = frozenset({"--help", "--version"})
_SHELLS: Final = (("shells", ("bash", "fish", "zsh")),)


def _version(asked: bool) -> None:  # noqa: FBT001 - Typer calls it with the option's value
    if asked:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version),
    ] = False,
) -> None:
    """Options that stand before every command."""


def _as_command(parsed: Any) -> Command:
    command: Command = parsed
    return command


def _always(answer: Answer) -> Command:
    def command(_show: Show) -> Answer:
        return answer

    return command


def _misuse(misunderstood: typer.TyperException) -> Misuse:
    """A fixed sentence and the valid names; never the word that was not understood, which may be anything."""
    context = getattr(misunderstood, "ctx", None)
    command = getattr(context, "command", None)
    path = getattr(context, "command_path", PROGRAM)
    commands = tuple(sorted(getattr(command, "commands", ())))
    options = tuple(sorted(_option_names(command, context)))
    valid = tuple((title, names) for title, names in (("commands", commands), ("options", options)) if names)
    return Misuse(f"{_complaint(misunderstood, grouped=bool(commands))} Try: {path} --help", valid)


def _complaint(misunderstood: typer.TyperException, *, grouped: bool) -> str:
    if hasattr(misunderstood, "option_name"):
        return "An option is unknown or incomplete."
    if grouped:
        return "The command is missing or unknown."
    return "An argument is missing, unknown or invalid."


def _option_names(command: Any, context: Any) -> list[str]:
    if command is None:
        return []
    parameters = command.get_params(context)
    return [name for parameter in parameters for name in parameter.opts if re.match(r"--\w", name)]


def _document(text: str, arguments: Sequence[str]) -> Document:
    if "--version" in arguments and "--help" not in arguments:
        return Document(text, "version", ExitStatus.OK, reported=__version__)
    completes = any("-completion" in argument for argument in arguments)
    return Document(_without_home(text), "completion" if completes else "help", ExitStatus.OK)


def _without_home(text: str) -> str:
    """Typer names the file that `--install-completion` wrote; the home directory's name is nobody's business."""
    try:
        return text.replace(str(Path.home()), "~")
    except RuntimeError:
        return text


def _help_columns() -> int:
    return max(MIN_COLUMNS, min(shutil.get_terminal_size().columns, MAX_COLUMNS)) - 1
