"""The parser of the command line, made with Typer: it turns arguments into a command that has not run yet.

Typer only parses. What it prints becomes a `Document`, and what it raises becomes a `Misuse`, so that one place, `app`,
decides about streams, exit statuses and JSON.
"""

from __future__ import annotations

import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from pi_session_mcp import __version__
from pi_session_mcp.cli import config, config_init, demo, doctor, extensions, install_completion, runtime, serve, setup
from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.outcome import Command, Document, Misuse, always
from pi_session_mcp.cli.streams import MAX_COLUMNS, MIN_COLUMNS
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM: Final = "pi-session-mcp"

_NO_LIMIT: Final = 1_000
_UNBREAKABLE: Final = "\u2011"
_HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}
_TYPE: Final = re.compile(r" <list\[\w+\]>\Z")
"""What Typer writes behind the name of an argument: its Python type."""
_HELP: Final = """Hand bounded work from a coding agent to sessions of the Pi coding agent.

The operator writes down the workspaces, models and permissions in one JSON file, and the agent can change none of it.
Begin with doctor: it names the next step, until a client can delegate.

\b
Example:
  pi-session-mcp doctor
"""


class _Copyable:
    """Help without line breaks at hyphens, since people copy names from it; and misuse that knows its command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]  # the other base class, Typer's, has it
        except typer.TyperException as misunderstood:
            if getattr(misunderstood, "ctx", None) is None:  # Typer leaves it out when a value is missing or surplus
                misunderstood.ctx = ctx  # type: ignore[attr-defined]  # for `_misuse`
            raise
        return rest

    def get_help(self, ctx: Any) -> str:
        text: str = super().get_help(ctx)  # type: ignore[misc]  # the same
        return text.replace(_UNBREAKABLE, "-")

    def format_help(self, ctx: Any, formatter: Any) -> None:
        write_text, write_dl = formatter.write_text, formatter.write_dl

        def definitions(rows: Sequence[tuple[str, str]], *rest: Any, **more: Any) -> None:
            write_dl([(_TYPE.sub("", term), _unbreakable(text)) for term, text in rows], *rest, **more)

        formatter.write_text = lambda text: write_text(_unbreakable(text))
        formatter.write_dl = definitions
        super().format_help(ctx, formatter)  # type: ignore[misc]  # the same


def _unbreakable(text: str) -> str:
    return text.replace("-", _UNBREAKABLE)


class _Command(_Copyable, TyperCommand):
    """A command of ours."""


class _App(typer.Typer):
    """An application or group whose commands are ours."""

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, cls=_Command, context_settings=_HELP_OPTIONS, **settings)


class _Group(_Copyable, TyperGroup):
    """Shows the whole sentence about each command. Typer would cut it off on a narrow terminal."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as misunderstood:
            misunderstood.unknown = args[0]  # type: ignore[attr-defined]  # for `_misuse`
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_NO_LIMIT)) for name, command in commands if command])


def new_app(help_text: str) -> typer.Typer:
    """A Typer application or group with the settings of this program."""
    return _App(
        cls=_Group,
        help=help_text,
        context_settings=_HELP_OPTIONS,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
        add_completion=False,  # our own scripts start no Python, see `completion`
    )


def build() -> typer.Typer:
    """The whole command line. Each command has a module of its own."""
    app = new_app(_HELP)
    app.callback()(_root)
    app.command("serve", help=serve.HELP)(serve.serve)
    app.command("doctor", help=doctor.HELP)(doctor.doctor)
    app.add_typer(runtime.group(new_app(runtime.HELP)), name="runtime")
    configuration = new_app(config.HELP)
    configuration.command("init", help=config_init.HELP)(config_init.init)
    app.add_typer(config.group(configuration), name="config")
    app.add_typer(extensions.group(new_app(extensions.HELP)), name="extensions")
    app.command("setup", help=setup.HELP)(setup.setup)
    app.command("demo", help=demo.HELP)(demo.demo)
    return app


def parse(arguments: Sequence[str]) -> Command:
    """The command that `arguments` stand for. If they are not understood, the command answers `Misuse`."""
    if _DOCUMENTS.intersection(arguments):
        # Any help text may be asked for with `--json`, also of a command that has no such option.
        arguments = [argument for argument in arguments if argument != "--json"]
    said, complaints = StringIO(), StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(complaints):
            parsed: Any = build()(
                list(arguments), prog_name=PROGRAM, standalone_mode=False, terminal_width=_help_columns()
            )
    except _ChosenError as chosen:
        return chosen.command
    except typer.TyperException as misunderstood:
        return always(_misuse(misunderstood))
    except SystemExit as ended:
        parsed = ended.code
    if callable(parsed):
        return _as_command(parsed)
    if (
        parsed == ExitStatus.INTERRUPTED
    ):  # Typer has turned the interrupt into a status, and `app` waits for the interrupt
        raise KeyboardInterrupt
    return always(_document(said.getvalue(), arguments))


_DOCUMENTS: Final = frozenset({"-h", "--help", "--version", "--install-completion", "--show-completion"})


class _ChosenError(Exception):
    """Raised to leave Typer with the command that an option of the whole program stands for."""

    def __init__(self, command: Command) -> None:
        super().__init__()
        self.command = command


def _version(asked: bool) -> None:  # noqa: FBT001 - Typer calls it with the option's value
    if asked:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _install_completion(asked: bool) -> None:  # noqa: FBT001 - the same
    if asked:
        raise _ChosenError(install_completion.install(read(build())))


def _show_completion(shell: str | None) -> None:
    if shell is not None:
        raise _ChosenError(install_completion.show(shell, read(build())))


def _shells() -> list[str]:
    return list(install_completion.SHELLS)


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version),
    ] = False,
    install_completion: Annotated[
        bool,
        typer.Option(
            "--install-completion",
            help="Install completion for the shell that this is run from.",
            is_eager=True,
            callback=_install_completion,
        ),
    ] = False,
    show_completion: Annotated[
        str | None,
        typer.Option(
            "--show-completion",
            metavar="SHELL",
            help="Print the completion script for bash, fish or zsh.",
            is_eager=True,
            callback=_show_completion,
            autocompletion=_shells,
        ),
    ] = None,
) -> None:
    """The options before the command."""


def _as_command(parsed: Any) -> Command:
    command: Command = parsed
    return command


def _misuse(misunderstood: typer.TyperException) -> Misuse:
    """A fixed sentence and the valid names. The word that was not understood may be anything, so it is not repeated."""
    context = getattr(misunderstood, "ctx", None)
    command = getattr(context, "command", None)
    path = getattr(context, "command_path", PROGRAM)
    commands = tuple(sorted(getattr(command, "commands", ())))
    options = tuple(sorted(_option_names(command, context)))
    valid = tuple((title, names) for title, names in (("commands", commands), ("options", options)) if names)
    message = f"{_complaint(misunderstood, grouped=bool(commands))} Try: {path} --help"
    return Misuse(message, valid, nearest=_nearest(misunderstood, command, options))


def _nearest(misunderstood: typer.TyperException, command: Any, options: tuple[str, ...]) -> tuple[str, ...]:
    """What the person may have meant: an option of this command, or a command of this group or of a group in it."""
    from pi_session_mcp.cli.nearest import nearest

    option, word = getattr(misunderstood, "option_name", None), getattr(misunderstood, "unknown", None)
    if option is not None:
        return tuple(name for name in nearest(str(option), options) if name != option)
    return () if word is None else nearest(word, _paths(command))


def _paths(group: Any, before: str = "") -> Iterator[str]:
    """Each command of `group`, then those of the groups in it, with all words that call it."""
    commands = getattr(group, "commands", {})
    yield from (before + name for name in commands)
    for name, command in commands.items():
        yield from _paths(command, f"{before}{name} ")


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
    if "--version" in arguments and not {"-h", "--help"}.intersection(arguments):
        return Document(text, "version", ExitStatus.OK, reported=__version__)
    return Document(text, "help", ExitStatus.OK)


def _help_columns() -> int:
    return max(MIN_COLUMNS, min(shutil.get_terminal_size().columns, MAX_COLUMNS)) - 1
