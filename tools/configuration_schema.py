"""The configuration's JSON Schema, which is shipped beside the models that it is made from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.config.schema import generate, to_text
from tools.generated import Generated

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE: Final = Path("pi_session_mcp/config/schema.json")


def files() -> Iterator[Generated]:
    """The schema."""
    yield Generated(FILE, to_text(generate()))
