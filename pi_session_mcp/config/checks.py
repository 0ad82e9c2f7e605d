"""Annotations that turn what pydantic refuses into breaches of our own rules. Pure.

The messages of pydantic repeat values of the file, so none of them may reach a reader.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import AfterValidator, BeforeValidator, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from pi_session_mcp.config.pointer import Breach

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import ValidatorFunctionWrapHandler

    from pi_session_mcp.config.rules import Rule

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

BREACHES: Final = "breaches"
"""The field of an error with its breaches. Their paths begin at the place that pydantic reports."""


def broken(*breaches: Breach) -> PydanticCustomError:
    """An error that carries `breaches` through pydantic."""
    return PydanticCustomError("rule", "a rule is broken", {BREACHES: breaches})


def breaks(rule: Rule) -> PydanticCustomError:
    """The error of a value that breaks `rule`."""
    return broken(Breach((), rule))


def only(rule: Rule, holds: Callable[[Any], bool] = lambda _: True) -> WrapValidator:
    """Any value that is not of the annotated type, or for which `holds` is false, breaks `rule`; so does `null`."""

    def judge(value: Any, typed: ValidatorFunctionWrapHandler) -> Any:
        try:
            accepted = typed(value)
        except ValidationError:
            accepted = None  # raised below and outside, so that the error with the value in it is not its cause
        if accepted is None or not holds(accepted):
            raise breaks(rule)
        return accepted

    return WrapValidator(judge)


def matching(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches as a whole. `$` would let a final newline pass."""
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def sized(
    container: type[tuple[Any, ...] | Mapping[Any, Any]], rule: Rule, fits: Callable[[int], bool]
) -> BeforeValidator:
    """A container of a wrong size breaks `rule` before its content is looked at."""

    def judge(value: Any) -> Any:
        if isinstance(value, container) and not fits(len(value)):
            raise breaks(rule)
        return value

    return BeforeValidator(judge)


def _until_one_is_wrong(value: Any, typed: ValidatorFunctionWrapHandler) -> Any:
    if not isinstance(value, dict):
        return typed(value)
    accepted: dict[Any, Any] = {}
    for key, entry in value.items():
        accepted.update(typed({key: entry}))
    return accepted


ENTRY_BY_ENTRY: Final = WrapValidator(_until_one_is_wrong)
"""Stops at the first wrong entry of a mapping that may be of any size: only the first breach is reported, and pydantic
would keep an error for each of a hostile hundred thousand."""


def _sealed(mapping: Mapping[K, V]) -> Mapping[K, V]:
    return MappingProxyType(dict(mapping))


SEALED: Final = AfterValidator(_sealed)
"""Makes a mapping read-only."""


def no_entries() -> Mapping[Any, Any]:
    """The default of an optional mapping."""
    return MappingProxyType({})


def repeats(keyed: Sequence[tuple[T, V]]) -> list[V]:
    """The second elements of the pairs whose first element came before."""
    seen: set[T] = set()
    again = []
    for key, item in keyed:
        if key in seen:
            again.append(item)
        seen.add(key)
    return again
