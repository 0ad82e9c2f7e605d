"""JSON Schemas of external tools: whether a schema is usable, and whether a value keeps to it. Pure.

A foreign schema can cost any amount of time and memory. So only the judge's process (`judge_program`) runs this, and it
can be ended. `jsonschema` is imported for the first schema.
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
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import validator_for

    if schema.get("type") != "object":
        return False
    try:
        # Without formats: one of them is "regex", and a pattern here is one of JavaScript and not of Python.
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema, format_checker=FormatChecker(formats=()))  # type: ignore[call-arg]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a foreign schema can make the library raise anything, and is not usable then
        return False
    return True


class Arguments:
    """Judges values by one schema, mostly the arguments of a tool. It follows no reference out of the schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend, validator_for
        from referencing import Registry

        known = validator_for(schema, default=Draft202012Validator)
        ours = {"pattern": _pattern, "type": _type}
        kind: type[Validator] = extend(known, ours)  # type: ignore[no-untyped-call]
        self._validator: Validator = kind(schema, registry=Registry())

    def accept(self, arguments: object) -> bool:
        """Whether the arguments are an object that keeps to the schema. `False` if that cannot be judged."""
        return self.judge(arguments) is True

    def judge(self, value: object) -> bool | None:
        """Whether the value is an object that keeps to the schema. `None` if the schema cannot be applied to it."""
        try:
            return isinstance(value, dict) and self._validator.is_valid(value)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a foreign schema can make the library raise anything
            return None


def _pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    """Patterns are those of JavaScript. A pattern that Python cannot read is not judged."""
    from jsonschema import ValidationError

    try:
        matches = not isinstance(instance, str) or re.search(pattern, instance) is not None
    except (re.error, OverflowError, RecursionError):
        return
    if not matches:
        yield ValidationError("pattern")


def _type(validator: Any, types: object, instance: object, _schema: object) -> Iterator[ValidationError]:
    """No value has a type that JSON Schema does not know, such as `file` and `date` of other formats."""
    from jsonschema import ValidationError
    from jsonschema.exceptions import UnknownType

    for one in types if isinstance(types, list) else [types]:
        try:
            if validator.is_type(instance, one):
                return
        except UnknownType:
            continue
    yield ValidationError("type")
