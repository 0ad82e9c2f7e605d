"""Chooses provider, model and thinking level of a first configuration: by options, by answers, or as only one fits.

A name that is in no list may be right, since an extension can bring a provider, but it is more often misspelt. So it
counts only when it is confirmed: by the option --allow-unlisted, or by typing it again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.outcome import Answer, Facts, Line, Mark, Misuse, Outcome
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.terms.selection import THINKING_LEVELS, Selection
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from pi_session_mcp.runtime.known_models import Known


_TRY: Final = "Try: pi-session-mcp config init --help"
_NO_LEVEL: Final = "The thinking level is unknown."
_TWICE: Final = "Correct it, or add --allow-unlisted to use it all the same."
_INSTALL: Final = (
    "Run `{command}`, which brings Pi's list of models, or name --provider and --model and add --allow-unlisted."
)


class Stop(Exception):  # noqa: N818 - an answer, found inside
    """Ends `config init` with `answer`."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Named:
    """What the options say; `None` where they say nothing. `allow_unlisted`: names that are in no list count, too."""

    provider: str | None
    model: str | None
    thinking_level: str | None
    allow_unlisted: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    """One name to choose: all listed names, those to offer, the usual one, and the one to take without asking."""

    kind: str
    names: tuple[str, ...]
    offered: tuple[str, ...]
    usual: str | None = None
    clear: str | None = None


def select(named: Named, known: Known, *, asking: bool) -> Selection:
    """The whole selection. `asking` says whether a person can be asked. Raises `Stop`."""
    if named.thinking_level not in (None, *THINKING_LEVELS):
        raise misuse(_NO_LEVEL, "thinking_level_invalid", "levels", THINKING_LEVELS, meant=named.thinking_level)
    if not known.has_catalogue and not named.allow_unlisted and not _lists(known, named):
        raise _catalogue_missing()
    provider = _chosen(_provider(known, asking=asking), named.provider, named, asking=asking)
    model = _chosen(_model(known, provider, asking=asking), named.model, named, asking=asking)
    return Selection(provider, model, _level(known, provider, model, named, asking=asking))


def misuse(complaint: str, code: str, title: str, names: tuple[str, ...], *, meant: str | None = None) -> Stop:
    """A misuse with the valid names, and those whose spelling is similar to `meant`."""
    from pi_session_mcp.cli.nearest import nearest

    return Stop(Misuse(f"{complaint} {_TRY}", ((title, names),), code, nearest(meant, names) if meant else ()))


def failed(code: str, remedy: str) -> Outcome:
    """The outcome when something is in the way. `remedy` says what to do about it."""
    blocks = (Line(Mark.FAILED, "failed", code), Facts((("do", remedy),)))
    return Outcome(ExitStatus.FAILURE, {"code": code, "remediation": remedy}, blocks)


def _lists(known: Known, named: Named) -> bool:
    """Whether the lists have the names that were given, or, without these, any name to choose from."""
    providers = known.providers if named.provider is None else (named.provider,)
    models = [model.id for provider in providers for model in known.models(provider)]
    return bool(models) if named.model is None else named.model in models


def _catalogue_missing() -> Stop:
    """There is no list of names without the runtime. A variable whose file is missing would stop its install."""
    is_named = bool(os.environ.get(VARIABLE))
    command = f"{f'env -u {VARIABLE} ' if is_named else ''}pi-session-mcp runtime install"
    return Stop(failed("catalogue_missing", _INSTALL.format(command=command)))


def _provider(known: Known, *, asking: bool) -> _Choice:
    ready = tuple(known.providers)
    usual = known.default_provider if known.default_provider in known.names else None
    clear = ready[0] if len(ready) == 1 else None if asking else usual
    return _Choice("provider", known.names, ready or known.names, usual, clear)


def _model(known: Known, provider: str, *, asking: bool) -> _Choice:
    names = tuple(model.id for model in known.models(provider))
    usual = known.default_model if provider == known.default_provider and known.default_model in names else None
    clear = names[0] if len(names) == 1 else None if asking else usual
    return _Choice("model", names, names, usual, clear)


def _level(known: Known, provider: str, model: str, named: Named, *, asking: bool) -> str:
    """Pi's own default if the model has it, else the nearest level; `medium` for an unknown model."""
    described = known.model(provider, model)
    levels = THINKING_LEVELS if described is None else described.levels
    usual = described.usual_level if described else "medium"
    clear = known.default_level if known.default_level in levels else usual
    return _chosen(_Choice("thinking level", levels, levels, None, clear), named.thinking_level, named, asking=asking)


def _chosen(choice: _Choice, name: str | None, named: Named, *, asking: bool) -> str:
    if name is None and choice.clear is not None:
        return choice.clear
    if name is not None and (name in choice.names or named.allow_unlisted):
        return name
    if asking:
        from pi_session_mcp.cli.asking import choose

        answer = choose(choice.kind.capitalize(), choice.names, choice.usual, doubted=name)
        if answer is not None:
            return answer
    raise _unlisted(choice, name) if name is not None else _required(choice)


def _required(choice: _Choice) -> Stop:
    complaint = f"No {choice.kind} is named, and which is meant is not clear: add --{choice.kind.replace(' ', '-')}."
    return misuse(complaint, f"{choice.kind}_required", *_valid(choice, choice.offered))


def _unlisted(choice: _Choice, name: str) -> Stop:
    complaint = f"Pi lists no {choice.kind} of this name here. {_TWICE}"
    code = f"{choice.kind.replace(' ', '_')}_unlisted"
    return misuse(complaint, code, *_valid(choice, choice.names), meant=name)


def _valid(choice: _Choice, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The names to choose from. If none is known, the option that takes any name."""
    return (f"{choice.kind.split()[-1]}s", names) if names else ("form", (f"--{choice.kind} NAME",))
