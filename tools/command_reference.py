"""The help texts in docs/commands.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.program import PROGRAM
from tools.generated import Generated
from tools.help_pages import page, paths

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: Final = Path("docs/commands.md")
BEGIN: Final = "<!-- The help texts below are written by tools/generate.py. -->\n"
END: Final = "<!-- End of the help texts. -->\n"
COLUMNS: Final = 80


def files() -> Iterator[Generated]:
    """The document, with every command's help text under a heading of its own."""
    yield Generated(DOCUMENT, "".join(_section(path) for path in paths()), (BEGIN, END))


def _section(path: tuple[str, ...]) -> str:
    lines = page(path, COLUMNS).splitlines()
    text = "".join(f"{line.rstrip()}\n" for line in lines)  # editors take spaces at line ends out of a document
    return f"### `{' '.join((PROGRAM, *path))}`\n\n```text\n{text}```\n\n"
