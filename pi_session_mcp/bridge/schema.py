"""JSON Schemas of external tools: whether one is usable, and whether arguments keep to it. Pure.

The SDK that speaks MCP for us requires `jsonschema`, so it is there; it is imported when the first tool is looked at,
because a server that grants no external tools has no use for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator


def is_usable_schema(schema: dict[str, Any]) -> bool:
    """Whether this is a valid JSON Schema of an object."""
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError
    from jsonschema.validators import validator_for

    if schema.get("type") != "object":
        return False
    try:
        # Without formats: a pattern is one of JavaScript, which is not for Python's `re` to judge.
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema, format_checker=FormatChecker(formats=()))  # type: ignore[call-arg]
    except (SchemaError, RecursionError):
        return False
    return True


class Arguments:
    """Judges the arguments of one tool. A reference that leads out of the schema is followed nowhere."""

    def __init__(self, schema: dict[str, Any]) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend, validator_for
        from referencing import Registry

        known = validator_for(schema, default=Draft202012Validator)
        kind: type[Validator] = extend(known, {"pattern": _pattern})  # type: ignore[no-untyped-call]
        self._validator: Validator = kind(schema, registry=Registry())

    def accept(self, arguments: object) -> bool:
        """Whether the arguments are an object that keeps to the schema. What cannot be judged does not."""
        from referencing.exceptions import Unresolvable

        try:
            return isinstance(arguments, dict) and self._validator.is_valid(arguments)
        except (Unresolvable, RecursionError, ValueError, re.error):
            return False


def _pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    """Patterns are JavaScript's. One that Python cannot read was judged by Pi alone, before us."""
    from jsonschema import ValidationError

    try:
        matches = not isinstance(instance, str) or re.search(pattern, instance) is not None
    except re.error:
        return
    if not matches:
        yield ValidationError("pattern")
