"""`pi-session-mcp config init`: a first configuration, from what Pi knows here and what the operator says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Command, Facts, Json, Line, Mark, Misuse, Outcome, Show
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from pi_session_mcp.config.initial import Initial
    from pi_session_mcp.runtime.known_models import Known

HELP: Final = """Write a first configuration; never over a file.

The providers and models are those that Pi knows on this machine: its files are read, and nothing is run or connected
to. On a terminal you are asked for what is neither named nor clear; elsewhere that is refused, and the names to choose
from are listed. The file is the one that --output names, or PI_SESSION_MCP_CONFIG, or else the default place,
~/.config/pi-session-mcp/config.json, which every command but serve reads when the variable is not set.

\b
Examples:
  pi-session-mcp config init
  pi-session-mcp config init --workspace app=~/code/app --coding
  pi-session-mcp config init --output pi.json --model claude-opus-5-5
"""

LEVELS: Final = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
VARIABLE: Final = "PI_SESSION_MCP_CONFIG"

_MAX_NAMES: Final = 40
_TRY: Final = "Try: pi-session-mcp config init --help"
_NEXT: Final = "Run `pi-session-mcp doctor`."
_NEXT_WITH_VARIABLE: Final = (
    "Set PI_SESSION_MCP_CONFIG to the absolute path of this file, then run `pi-session-mcp doctor`."
)
_EXISTS: Final = (
    "Edit or remove what is there (`pi-session-mcp config check` reads it), or name another file with --output."
)
_UNWRITABLE: Final = "Name a file in a directory that exists and that you can write to, with --output."
_NO_HOME: Final = "Set HOME, or name the file with --output."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say; `None` or empty where they say nothing."""

    workspaces: tuple[str, ...]
    provider: str | None
    model: str | None
    thinking_level: str | None
    coding: bool
    output: str | None


class _Stop(Exception):  # noqa: N818 - an answer, found inside
    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def complete_level(incomplete: str) -> list[str]:
    """The thinking levels that begin with what was typed."""
    return [level for level in LEVELS if level.startswith(incomplete)]


def complete_file() -> list[str]:
    """Any file of this machine; the shells know them best."""
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
    coding: Annotated[bool, typer.Option("--coding", help="Add a profile whose sessions may change files.")] = False,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="The file to write.", autocompletion=complete_file)
    ] = None,
    json_: JsonOption = False,
) -> Command:
    """The parsed command."""
    wanted = Wanted(tuple(workspace or ()), provider, model, thinking_level, coding, output)

    def command(show: Show) -> Answer:
        try:
            return _init(wanted, show, may_ask=not json_)
        except _Stop as stopped:
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
        raise _Stop(_failed("config_exists", _EXISTS))
    if wanted.thinking_level not in (None, *LEVELS):
        raise _misuse("The thinking level is unknown.", "thinking_level_invalid", "levels", LEVELS)
    with show.working("Looking for the models that Pi knows"):
        known, agent_directory = _known()
    chosen = _choose(wanted, known, agent_directory, asking=may_ask and somebody_is_there())
    content = text_of(chosen)
    try:
        fingerprint = interpret(content, path.parent).fingerprint
    except ConfigError as refused:
        return refusal(refused)
    _write(path, content, make_directory=is_default)
    return _written(chosen, known, fingerprint, following=_NEXT if _is_read_by_commands(path) else _NEXT_WITH_VARIABLE)


def _place(wanted: Wanted) -> tuple[Path, bool]:
    """The file to write, absolute, and whether it is the one at the default place, whose directory may be made."""
    from pi_session_mcp.config.place import default_place

    named = wanted.output or os.environ.get(VARIABLE)
    if named:
        return Path.cwd() / Path(named), False
    usual = default_place(os.environ)
    if usual is None:
        raise _Stop(_failed("home_missing", _NO_HOME))
    return usual, True


def _is_read_by_commands(path: Path) -> bool:
    """Whether the file that was written is where the other commands look, as things are in this shell."""
    from pi_session_mcp.config.place import place_to_read

    read = place_to_read(os.environ.get(VARIABLE, ""), os.environ, Path.cwd())
    return read is not None and read.path == path


def _known() -> tuple[Known, Path | None]:
    """What Pi knows, and its agent directory where a variable names it: clients do not pass that on."""
    from pi_session_mcp.errors import Refusal
    from pi_session_mcp.runtime.agent_directory import agent_directory
    from pi_session_mcp.runtime.asked import NothingAsked
    from pi_session_mcp.runtime.known_models import Known, known_models

    asked = NothingAsked()
    try:
        place = agent_directory(asked, os.environ, Path.cwd())
        usual = agent_directory(asked, {"HOME": os.environ.get("HOME", "")}, Path.cwd())
    except Refusal:
        return Known({}), None
    return known_models(place, _sdk()), place if place != usual else None


def _sdk() -> Path | None:
    from pi_session_mcp.runtime.asked import NothingAsked
    from pi_session_mcp.runtime.locate import find_sdk
    from pi_session_mcp.runtime.problem import RuntimeProblem
    from pi_session_mcp.runtime.record import find_installed

    try:
        return find_sdk(NothingAsked(), os.environ, Path.cwd(), find_installed(os.environ)).package
    except RuntimeProblem:
        return None


def _choose(wanted: Wanted, known: Known, agent_directory: Path | None, *, asking: bool) -> Initial:
    from pi_session_mcp.config.initial import Initial

    workspaces = _workspaces(wanted.workspaces, asking=asking)
    provider = wanted.provider or _provider(known, asking=asking)
    model = wanted.model or _model(known, provider, asking=asking)
    return Initial(
        workspaces=workspaces,
        provider=provider,
        model=model,
        thinking_level=wanted.thinking_level or _level(known, provider, model),
        coding=wanted.coding,
        pi_agent_directory=agent_directory,
    )


def _workspaces(named: tuple[str, ...], *, asking: bool) -> dict[str, Path]:
    if named:
        pairs = [_workspace(text) for text in named]
    elif asking:
        pairs = [_asked_workspace()]
    else:
        raise _misuse("No workspace is named.", "workspace_required", "form", ("--workspace ALIAS=PATH",))
    if len(dict(pairs)) < len(pairs):
        raise _misuse("A workspace alias is named twice.", "workspace_invalid", "form", ("--workspace ALIAS=PATH",))
    return dict(pairs)


def _workspace(text: str) -> tuple[str, Path]:
    alias, separator, written = text.partition("=")
    path = _directory(written) if separator and alias else None
    if path is None:
        complaint = "A workspace is not ALIAS=PATH with a directory that exists."
        raise _misuse(complaint, "workspace_invalid", "form", ("--workspace ALIAS=PATH",))
    return alias, path


def _asked_workspace() -> tuple[str, Path]:
    from pi_session_mcp.cli.asking import ask
    from pi_session_mcp.config.initial import alias_for

    question = "Directory that sessions may work in"
    while (written := ask(question, str(Path.cwd()))) is not None:
        if path := _directory(written):
            return alias_for(path.name), path
        question = "That is no directory. Directory that sessions may work in"
    raise _misuse("No workspace is named.", "workspace_required", "form", ("--workspace ALIAS=PATH",))


def _directory(written: str) -> Path | None:
    """The directory, absolute. The shell expands no `~` after `=`, so it is done here."""
    try:
        path = Path(os.path.normpath(Path.cwd() / Path(written).expanduser()))
        return path if written and path.is_dir() else None
    except (RuntimeError, ValueError, OSError):
        return None


def _provider(known: Known, *, asking: bool) -> str:
    from pi_session_mcp.cli.asking import choose

    names = tuple(known.providers)
    usual = known.default_provider if known.default_provider in names else None
    clear = names[0] if len(names) == 1 else usual
    if clear is not None and (not asking or len(names) == 1):
        return clear
    answer = choose("Provider", names, usual) if asking else None
    if answer is None:
        raise _misuse(
            "No provider is named, and which is meant is not clear.", "provider_required", *_named("provider", names)
        )
    return answer


def _model(known: Known, provider: str, *, asking: bool) -> str:
    from pi_session_mcp.cli.asking import choose

    names = tuple(model.id for model in known.providers.get(provider, ()))
    usual = known.default_model if provider == known.default_provider else None
    clear = names[0] if len(names) == 1 else usual
    if clear is not None and (not asking or len(names) == 1):
        return clear
    answer = choose("Model", names, usual) if asking else None
    if answer is None:
        raise _misuse("No model is named, and which is meant is not clear.", "model_required", *_named("model", names))
    return answer


def _level(known: Known, provider: str, model: str) -> str:
    """Pi's own default where the model has it, else what comes near; medium for a model that nobody knows."""
    described = known.model(provider, model)
    if described is None:
        return known.default_level or "medium"
    return known.default_level if known.default_level in described.levels else described.usual_level


def _write(path: Path, content: bytes, *, make_directory: bool) -> None:
    from pi_session_mcp.config.initial import create

    try:
        if make_directory:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create(path, content)
    except FileExistsError:
        raise _Stop(_failed("config_exists", _EXISTS)) from None
    except (OSError, ValueError):
        raise _Stop(_failed("config_unwritable", _UNWRITABLE)) from None


def _written(chosen: Initial, known: Known, fingerprint: str, *, following: str) -> Outcome:
    is_known = known.model(chosen.provider, chosen.model) is not None
    selection = {"provider": chosen.provider, "model": chosen.model, "thinkingLevel": chosen.thinking_level}
    members: dict[str, Json] = {"fingerprint": fingerprint, **selection, "modelKnown": is_known}
    shown = (("provider", chosen.provider), ("model", chosen.model), ("thinking", chosen.thinking_level))
    unknown = () if is_known else (("note", "Pi's files on this machine do not name this model."),)
    line = Line(Mark.OK, "written", "The configuration is written, and valid.")
    return Outcome(ExitStatus.OK, members, (line, Facts((*shown, *unknown, ("next", following)))))


def _failed(code: str, remedy: str) -> Outcome:
    blocks = (Line(Mark.FAILED, "failed", code), Facts((("do", remedy),)))
    return Outcome(ExitStatus.FAILURE, {"code": code, "remediation": remedy}, blocks)


def _named(kind: str, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The names to choose from, as many as somebody would read; where none is known, the option that takes any."""
    return (f"{kind}s", names[:_MAX_NAMES]) if names else ("form", (f"--{kind} NAME",))


def _misuse(complaint: str, code: str, title: str, names: tuple[str, ...]) -> _Stop:
    return _Stop(Misuse(f"{complaint} {_TRY}", ((title, names),), code))
