"""The completion scripts in completions/, one for each shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.completion import SCRIPTS
from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.program import build
from tools.generated import Generated

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY: Final = Path("completions")


def files() -> Iterator[Generated]:
    """Each script."""
    root = read(build())
    for name, write in SCRIPTS.values():
        yield Generated(DIRECTORY / name, write(root))
