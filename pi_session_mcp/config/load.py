"""Loads the operator's configuration: reads the bytes once, and takes all of it or refuses all of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from pi_session_mcp.config.checks import BREACHES
from pi_session_mcp.config.errors import ConfigError
from pi_session_mcp.config.model import Configuration, Document, RuntimeOverride, Strict
from pi_session_mcp.config.pointer import Breach, first_in_document, show
from pi_session_mcp.config.reading import read_once
from pi_session_mcp.config.rules import Rule
from pi_session_mcp.errors import ConfigCode
from pi_session_mcp.platform.text import path_text
from pi_session_mcp.terms.strict_json import Parsed, TextFlaw, TreeFlaw, parse
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pi_session_mcp.config.place import Place
    from pi_session_mcp.terms.strict_json import Tree

__all__ = [
    "ConfigError",
    "config_path_for_operator",
    "config_path_for_server",
    "interpret",
    "load",
    "place_for_operator",
]


KNOWN_FIELDS: Final = frozenset(
    field.alias for part in Strict.__subclasses__() for field in part.model_fields.values() if field.alias is not None
)

_RULES_OF_TYPES: Final = {
    "missing": Rule.REQUIRED,
    "extra_forbidden": Rule.UNKNOWN_FIELD,
    "model_type": Rule.OBJECT,
    "dict_type": Rule.OBJECT,
    "tuple_type": Rule.LIST,
}
_RULES_OF_KEYS: Final = {Rule.ALIAS, Rule.SHORT_ALIAS, Rule.CHILD_VARIABLE}
_TOP_LEVEL_SHAPE: Final = {Rule.REQUIRED, Rule.OBJECT}


def config_path_for_server(environ: Mapping[str, str]) -> Path:
    """The path that the variable names, for `serve`, whose working directory may be hostile.

    Raises `ConfigError` (`config_path_required`) when the variable is unset, empty or relative.
    """
    named = environ.get(VARIABLE, "")
    if not named:
        raise ConfigError(ConfigCode.PATH_REQUIRED, Rule.VARIABLE_UNSET)
    if not os.path.isabs(named):
        raise ConfigError(ConfigCode.PATH_REQUIRED, Rule.VARIABLE_RELATIVE)
    return Path(named)


def place_for_operator(environ: Mapping[str, str], cwd: Path) -> Place:
    """Where the operator's commands read the configuration, and whether the variable says so; see `config.place`.

    Raises `ConfigError` (`config_path_required`) when no file is named and none is at the default place.
    """
    from pi_session_mcp.config.operator_environment import (
        read_environment,  # imported here, since `serve` must not pay for pydantic-settings
    )
    from pi_session_mcp.config.place import place_to_read

    place = place_to_read(read_environment(environ).path, environ, cwd)
    if place is None:
        raise ConfigError(ConfigCode.PATH_REQUIRED, Rule.VARIABLE_UNSET)
    return place


def config_path_for_operator(environ: Mapping[str, str], cwd: Path) -> Path:
    """The path alone; see `place_for_operator`."""
    return place_for_operator(environ, cwd).path


def load(path: Path) -> Configuration:
    """The configuration in the file at `path`, which is absolute and is read once.

    Raises `ConfigError` and nothing else. Then nothing of the file is used.
    """
    return interpret(read_once(path), path.parent.absolute())


def interpret(text: bytes, directory: Path) -> Configuration:
    """The configuration that `text` says, with relative paths resolved against the absolute `directory`.

    Raises `ConfigError` with the first breach in document order. A rule that compares fields is judged when each of
    them is right by itself.
    """
    parsed = parse(text)
    if not isinstance(parsed, Parsed):
        raise _refuse_flaw(parsed)
    document = _validated(parsed.tree)
    if isinstance(document, ConfigError):
        raise document
    return _resolved(document, directory, fingerprint=f"sha256:{hashlib.sha256(text).hexdigest()}")


def _refuse_flaw(flaw: TextFlaw | TreeFlaw) -> ConfigError:
    if isinstance(flaw, TextFlaw):
        return ConfigError(ConfigCode.INVALID, Rule[flaw.fault.name], line=flaw.line, column=flaw.column)
    return ConfigError(ConfigCode.INVALID, Rule[flaw.fault.name], pointer=show(flaw.path, KNOWN_FIELDS))


def _validated(tree: Tree) -> Document | ConfigError:
    # The error is returned and not raised here: an exception keeps the one that was being handled.
    try:
        return Document.model_validate(tree, by_alias=True, by_name=False)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        first = first_in_document(tree, [breach for each in found for breach in _breaches(each)])
    return ConfigError(_code(first), first.rule, pointer=show(first.path, KNOWN_FIELDS))


def _breaches(error: Any) -> Iterator[Breach]:
    if error["type"] == "default_factory_not_called":
        return  # it follows from another error in the list
    if error["type"] in _RULES_OF_TYPES:
        yield Breach(error["loc"], _RULES_OF_TYPES[error["type"]])
        return
    for breach in error["ctx"][BREACHES]:
        place = error["loc"][:-1] if breach.rule in _RULES_OF_KEYS else error["loc"]  # pydantic adds "[key]"
        yield Breach((*place, *breach.path), breach.rule)


def _code(breach: Breach) -> ConfigCode:
    if breach.rule is Rule.THINKING_LEVEL:
        return ConfigCode.INVALID_THINKING_LEVEL
    of_the_file = len(breach.path) == 1 and breach.rule in _TOP_LEVEL_SHAPE
    if breach.path[:1] == ("executionProfiles",) and not of_the_file:
        return ConfigCode.INVALID_EXECUTION_PROFILE
    return ConfigCode.INVALID


def _resolved(document: Document, directory: Path, *, fingerprint: str) -> Configuration:
    agent = document.pi_agent_directory
    return Configuration(
        workspaces=MappingProxyType({alias: _below(directory, text) for alias, text in document.workspaces.items()}),
        execution_profiles=document.execution_profiles,
        max_sessions=document.limits.max_sessions,
        pi_agent_directory=None if agent is None else _below(directory, agent),
        runtime=RuntimeOverride(node=_optional(document.runtime.node), sdk=_optional(document.runtime.sdk)),
        fingerprint=fingerprint,
    )


def _below(directory: Path, text: str) -> Path:
    return Path(os.path.normpath(directory / path_text(text)))


def _optional(text: str | None) -> Path | None:
    return None if text is None else Path(path_text(text))
