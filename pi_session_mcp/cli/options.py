"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON report instead of text.")]
"""Declared so that the option is known and explained; the boundary reads it before anything is parsed."""
