"""Reads the JSON that clients answer with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pi_session_mcp.setup.clients.base import Inspection, Seen, can_be_registered
from pi_session_mcp.setup.clients.program import text_of
from pi_session_mcp.setup.registration import PASSED_ON, Registration, without_passed_on
from pi_session_mcp.terms import strict_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.setup.clients.base import Settings
    from pi_session_mcp.terms.strict_json import Tree


def json_object(stdout: bytes) -> Mapping[str, Tree] | None:
    """The strict JSON object that is all of `stdout`, or `None`."""
    text = text_of(stdout)
    if text is None or not text.startswith("{"):
        return None
    parsed = strict_json.parse(stdout)
    if not isinstance(parsed, strict_json.Parsed) or not isinstance(parsed.tree, dict):
        return None
    return parsed.tree


def same(left: Tree, right: Tree) -> bool:
    """Equality as JSON has it: `true` is not 1, and 1 is not 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def registration_from(entry: Mapping[str, Tree]) -> Registration | None:
    """The registration in `command`, `args` and `env` of `entry`, if each has its type."""
    command, arguments, environment = entry["command"], entry["args"], entry["env"]
    if environment is None:
        environment = {}
    if not isinstance(command, str) or not isinstance(arguments, tuple) or not isinstance(environment, dict):
        return None
    words = tuple(word for word in arguments if isinstance(word, str))
    values = {key: value for key, value in environment.items() if isinstance(value, str)}
    whole = len(words) == len(arguments) and len(values) == len(environment)
    return Registration(command, words, values) if whole else None


ADDED: Final = "env"
"""The setting with the variables that the owner has added."""


def compared(
    registration: Registration | None, intent: Registration, settings: Settings, *, is_disabled: bool = False
) -> Inspection:
    """The inspection that found `registration` with `settings`. `None` stands for something of another form."""
    if registration is None:
        return Inspection(Seen.UNSUPPORTED)
    added = tuple(name for name in registration.environment if name in PASSED_ON)
    if added:
        registration, settings = without_passed_on(registration), {**settings, ADDED: added}
    equivalent = registration == intent and can_be_registered(intent) and not is_disabled
    seen = Seen.EQUIVALENT if equivalent else Seen.DIVERGENT
    return Inspection(seen, registration, is_disabled=is_disabled, settings=settings)


def is_names(value: Tree) -> bool:
    """Whether `value` is a list of texts."""
    return isinstance(value, tuple) and all(isinstance(one, str) for one in value)


def is_number(value: Tree) -> bool:
    """Whether `value` is a number. `true` is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
