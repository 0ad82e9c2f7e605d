"""`pi-session-mcp config init`: a first configuration, from what Pi knows here and what the operator says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Command, Facts, Json, Line, Mark, Outcome, Show
from pi_session_mcp.cli.selecting import Named, Stop, failed, misuse, select
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.text import utf8_text
from pi_session_mcp.terms.selection import THINKING_LEVELS, Selection
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.config.initial import Initial
    from pi_session_mcp.runtime.known_models import Known

HELP: Final = """Write a first configuration; never over a file.

The providers and models are those that Pi knows on this machine, with or without a login. Only files are read:
nothing is run or connected to. If you leave out a name and it is not clear which is meant, you are asked on a terminal.
Elsewhere the command is refused and lists the names to choose from. A name that Pi does not list is refused without
--allow-unlisted.

The file is named by --output, or else by PI_SESSION_MCP_CONFIG. Without both it is at the default place,
~/.config/pi-session-mcp/config.json, where every command but serve looks when the variable is not set.

\b
Examples:
  pi-session-mcp config init
  pi-session-mcp config init --workspace app=~/code/app --coding
  pi-session-mcp config init --output pi.json --model claude-opus-5-5
"""

_NO_WORKSPACE: Final = "No workspace is named: add --workspace."
_TWICE: Final = "Two workspaces have the same alias."
_NO_DIRECTORY: Final = "A workspace must be ALIAS=PATH, and PATH a directory that exists."
_FORM: Final = ("form", ("--workspace ALIAS=PATH",))
_NEXT: Final = "Run `pi-session-mcp doctor`."
_NEXT_WITH_VARIABLE: Final = (
    "Set PI_SESSION_MCP_CONFIG to the absolute path of this file, then run `pi-session-mcp doctor`."
)
_UNKNOWN_MODEL: Final = "Pi's files on this machine do not name this model."
_NO_LOGIN: Final = (
    "Pi's files hold no login for this provider. Unless a variable of its own holds the key, start `pi` (npm package "
    "@earendil-works/pi-coding-agent) and type /login, or write the key into auth.json in Pi's agent directory "
    '(~/.pi/agent): {"PROVIDER": {"type": "api_key", "key": "KEY"}}.'
)
_EXISTS: Final = (
    "Edit or remove what is there (`pi-session-mcp config check` reads it), or name another file with --output."
)
_UNWRITABLE: Final = (
    "Name a file in a directory that exists and that you can write to, with --output, or make room on its disk."
)
_NO_HOME: Final = "Set HOME, or name the file with --output."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say; `None` or empty where they say nothing."""

    workspaces: tuple[str, ...]
    selection: Named
    coding: bool
    output: str | None


def complete_level(incomplete: str) -> list[str]:
    """The thinking levels that begin with what was typed."""
    return [level for level in THINKING_LEVELS if level.startswith(incomplete)]


def complete_file() -> list[str]:
    """Any file of this machine, which the shell completes itself."""
    from pi_session_mcp.cli.grammar import FILES

    return [FILES]


def init(
    *,
    workspace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ALIAS=PATH",
            show_default=False,
            help="A directory that sessions may work in, and the name that clients know it by. May be repeated.",
        ),
    ] = None,
    provider: Annotated[str | None, typer.Option(metavar="NAME", help="The provider, as Pi names it.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model, as Pi names it.")] = None,
    thinking_level: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="One of off, minimal, low, ... max.", autocompletion=complete_level),
    ] = None,
    coding: Annotated[
        bool, typer.Option("--coding", help="Add an execution profile whose sessions may change files.")
    ] = False,
    allow_unlisted: Annotated[
        bool, typer.Option("--allow-unlisted", help="Take names that Pi does not list here, too.")
    ] = False,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="The file to write.", autocompletion=complete_file)
    ] = None,
    json_: JsonOption = False,
) -> Command:
    """The parsed command."""
    provider, model, thinking_level = ((text or "").strip() or None for text in (provider, model, thinking_level))
    named = Named(provider, model, thinking_level, allow_unlisted)
    wanted = Wanted(tuple(workspace or ()), named, coding, output)

    def command(show: Show) -> Answer:
        try:
            return _init(wanted, show, may_ask=not json_)
        except Stop as stopped:
            return stopped.answer

    return command


def _init(wanted: Wanted, show: Show, *, may_ask: bool) -> Answer:
    from pi_session_mcp.cli.asking import somebody_is_there
    from pi_session_mcp.cli.operator_file import refusal
    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.config.initial import text_of
    from pi_session_mcp.config.load import interpret

    path, is_default = _place(wanted)
    if os.path.lexists(path):
        raise Stop(failed("config_exists", _EXISTS))
    asking = may_ask and somebody_is_there()
    try:
        workspaces = _workspaces(wanted.workspaces, path.parent, asking=asking)
        with show.working("Looking for the models that Pi knows"):
            known, agent_directory = _known()
        selection = select(wanted.selection, known, asking=asking)
        chosen = _initial(workspaces, selection, coding=wanted.coding, agent_directory=agent_directory)
        content = text_of(chosen)
        fingerprint = interpret(content, path.parent).fingerprint
    except ConfigError as refused:
        return refusal(refused)
    _write(path, content, make_directory=is_default)
    return _written(chosen, known, fingerprint, is_read=_is_read_by_commands(path))


def _initial(
    workspaces: dict[str, Path], selection: Selection, *, coding: bool, agent_directory: Path | None = None
) -> Initial:
    from pi_session_mcp.config.initial import Initial

    return Initial(workspaces, selection, coding=coding, pi_agent_directory=agent_directory)


def _place(wanted: Wanted) -> tuple[Path, bool]:
    """The absolute path of the file to write, and whether it is the default place, whose directory may be created."""
    from pi_session_mcp.config.place import default_place

    if wanted.output:
        return Path.cwd() / _expanded(wanted.output), False
    if named := os.environ.get(VARIABLE):
        return Path.cwd() / Path(named), False
    usual = default_place(os.environ)
    if usual is None:
        raise Stop(failed("home_missing", _NO_HOME))
    return usual, True


def _expanded(written: str) -> Path:
    """The path with the home directory in place of `~`: the shell does not replace it in `--output=~/pi.json`."""
    try:
        return Path(written).expanduser()
    except RuntimeError:  # there is no such user, or no home
        return Path(written)


def _is_read_by_commands(path: Path) -> bool:
    """Whether the other commands, with the variables of this shell, read the file that was written."""
    from pi_session_mcp.config.place import place_to_read

    read = place_to_read(os.environ.get(VARIABLE, ""), os.environ, Path.cwd())
    return read is not None and read.path == path


def _known() -> tuple[Known, Path | None]:
    """What Pi knows. Its agent directory too if a variable names it: clients do not pass that variable on."""
    from pi_session_mcp.runtime.known_models import known_models

    place = _agent_directory(os.environ)
    usual = _agent_directory({"HOME": os.environ.get("HOME", "")})
    return known_models(place or Path(os.devnull), _sdk()), place if place != usual else None


def _agent_directory(environ: Mapping[str, str]) -> Path | None:
    """Pi's agent directory according to these variables; `None` when there is none that Pi could be told."""
    from pi_session_mcp.errors import Refusal
    from pi_session_mcp.runtime.agent_directory import agent_directory
    from pi_session_mcp.runtime.overrides import NothingAsked

    try:
        return agent_directory(NothingAsked(), environ, Path.cwd())
    except Refusal:
        return None


def _sdk() -> Path | None:
    from pi_session_mcp.runtime.locate import find_sdk
    from pi_session_mcp.runtime.overrides import NothingAsked
    from pi_session_mcp.runtime.problem import RuntimeProblem
    from pi_session_mcp.runtime.record import find_installed

    try:
        return find_sdk(NothingAsked(), os.environ, Path.cwd(), find_installed(os.environ)).package
    except RuntimeProblem:
        return None


def _workspaces(named: tuple[str, ...], directory: Path, *, asking: bool) -> dict[str, Path]:
    """Aliases with their directories. Raises `Stop`, or `ConfigError` for what no configuration may have.

    The rules are tried here, on a configuration with a made-up model, before the person is asked anything more.
    """
    from pi_session_mcp.config.initial import text_of
    from pi_session_mcp.config.load import interpret

    if named:
        pairs = [_workspace(text) for text in named]
    elif asking:
        pairs = [_asked_workspace()]
    else:
        raise misuse(_NO_WORKSPACE, "workspace_required", *_FORM)
    if len(dict(pairs)) < len(pairs):
        raise misuse(_TWICE, "workspace_invalid", *_FORM)
    workspaces = dict(pairs)
    interpret(text_of(_initial(workspaces, Selection("any", "any", "off"), coding=False)), directory)
    return workspaces


def _workspace(text: str) -> tuple[str, Path]:
    alias, separator, written = text.partition("=")
    path = _directory(written) if separator and alias else None
    if path is None:
        raise misuse(_NO_DIRECTORY, "workspace_invalid", *_FORM)
    return alias, path


def _asked_workspace() -> tuple[str, Path]:
    from pi_session_mcp.cli.asking import ask
    from pi_session_mcp.config.initial import alias_for

    question = "Directory that sessions may work in"
    while (written := ask(question, str(Path.cwd()))) is not None:
        if path := _directory(written):
            return alias_for(path.name), path
        question = "That is no directory. Directory that sessions may work in"
    raise misuse(_NO_WORKSPACE, "workspace_required", *_FORM)


def _directory(written: str) -> Path | None:
    """The absolute path of the directory. The shell does not expand a `~` after `=`, so this function does."""
    try:
        path = Path(os.path.normpath(Path.cwd() / Path(written).expanduser()))
        return path if written and path.is_dir() and utf8_text(path) is not None else None
    except (RuntimeError, ValueError, OSError):
        return None


def _write(path: Path, content: bytes, *, make_directory: bool) -> None:
    from pi_session_mcp.config.initial import create

    try:
        if make_directory:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create(path, content)
    except FileExistsError:
        raise Stop(failed("config_exists", _EXISTS)) from None
    except (OSError, ValueError):
        raise Stop(failed("config_unwritable", _UNWRITABLE)) from None


def _written(chosen: Initial, known: Known, fingerprint: str, *, is_read: bool) -> Outcome:
    from pi_session_mcp.config.initial import profiles_of

    selection = chosen.selection
    is_known = known.model(selection.provider, selection.model) is not None
    is_ready = selection.provider in known.providers
    members: dict[str, Json] = {
        "fingerprint": fingerprint,
        "workspaces": list(chosen.workspaces),
        "executionProfiles": list(profiles_of(chosen)),
        **selection.to_json(),
        "modelKnown": is_known,
        "loginKnown": is_ready,
    }
    shown = (
        ("workspace" if len(chosen.workspaces) == 1 else "workspaces", ", ".join(chosen.workspaces)),
        ("profiles" if chosen.coding else "profile", ", ".join(profiles_of(chosen))),
        ("provider", selection.provider),
        ("model", selection.model),
        ("thinking", selection.thinking_level),
    )
    notes = (*((("note", _UNKNOWN_MODEL),) if not is_known else ()), *((("login", _NO_LOGIN),) if not is_ready else ()))
    line = Line(Mark.OK, "written", "The configuration is written, and valid.")
    following = ("next", _NEXT if is_read else _NEXT_WITH_VARIABLE)
    return Outcome(ExitStatus.OK, members, (line, Facts((*shown, *notes, following))))
