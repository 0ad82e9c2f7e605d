"""Pins of Pi extensions: `npm:<name>@<exact version>`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MAX_PIN_CHARACTERS: Final = 256

_PART: Final = r"[a-z0-9][a-z0-9._~-]*"
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_IDENTIFIER: Final = rf"(?:[0-9]*[A-Za-z-][0-9A-Za-z-]*|{_NUMBER})"
_VERSION: Final = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_IDENTIFIER}(?:\.{_IDENTIFIER})*)?"

PIN_PATTERN: Final = rf"npm:((?:@{_PART}/)?{_PART})@({_VERSION})"
_PIN: Final = re.compile(PIN_PATTERN)


@dataclass(frozen=True, slots=True)
class Pin:
    """One exact version of one npm package."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def written(self) -> str:
        """The pin as the configuration has it."""
        return f"npm:{self}"


def parse(text: str) -> Pin:
    """Read one pin. Raises `ValueError`, which does not repeat the text, for anything else."""
    found = _PIN.fullmatch(text) if len(text) <= MAX_PIN_CHARACTERS else None
    if found is None:
        raise ValueError("not an exact pin")
    return Pin(name=found[1], version=found[2])
