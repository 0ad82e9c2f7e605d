"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON report instead of text.")]
"""Typer needs it for the help text. What the option says is read before parsing, in `app`."""
