"""What a client's model is asked and what it answers, whatever interface the two speak. Pure."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Use:
    """One call of one of our tools, by its own name."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Calls:
    """An answer that calls tools, all at once. Each has its id."""

    uses: tuple[tuple[str, Use], ...]


@dataclass(frozen=True, slots=True)
class Words:
    """An answer that ends the client's turn."""

    text: str


Answer = Calls | Words
Result = Mapping[str, Any]
Script = Generator[Sequence[Use], list[Result], str]
"""Yields the calls of an answer, is sent their results, and returns the last words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to the model: the names that it offers, and the texts of all results, by the call's id."""

    offered: frozenset[str]
    results: Mapping[str, str]

    @property
    def is_work(self) -> bool:
        """Whether this is the conversation itself. Clients also ask for titles and the like, without any tool."""
        return bool(self.offered)


def read_result(text: str) -> Result:
    """The object in a tool result; clients may put words of their own before it. Empty where there is none."""
    start = text.find("{")
    if start < 0:
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
