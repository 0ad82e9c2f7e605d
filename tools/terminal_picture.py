"""Draws what a command shows on a terminal as an SVG: its colours, its widths, and nothing fetched from elsewhere.

    script -qec "pi-session-mcp demo" /dev/null > shown
    .venv/bin/python tools/terminal_picture.py "pi-session-mcp demo" < shown > docs/demo.svg

(`script` gives the command a terminal. What is drawn again and again, a spinner for example, is drawn as it was last.)
"""

from __future__ import annotations

import io
import re
import sys
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.text import Text

COLUMNS: Final = 78
_FONT_FACES: Final = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
_UNSEEN: Final = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\?[0-9;]*[hl]")
_MOVES: Final = re.compile(r"(\r?\n|\r|\x1b\[[0-9]*A|\x1b\[2K)")


def settled(written: str) -> list[str]:
    """The lines as they stand at the end, where some were drawn over others."""
    lines, row = [""], 0
    for piece in _MOVES.split(_UNSEEN.sub("", written)):
        if piece.endswith("\n"):
            row += 1
            lines += [""] * (row == len(lines))
        elif piece.endswith("A"):
            row = max(row - int(piece[2:-1] or 1), 0)
        elif piece in {"\r", "\x1b[2K"}:
            lines[row] = ""
        else:
            lines[row] += piece
    return lines


def picture(shown: str, command: str) -> str:
    """The SVG of a terminal in which `command` was typed and has `shown` this."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "green"), (command, "bold")))
    for line in AnsiDecoder().decode("\n".join(settled(shown)).rstrip()):
        console.print(line)
    # Rich's own format names fonts of a public host; a reader's own monospaced font does as well.
    return console.export_svg(title="", code_format=_FONT_FACES.sub("", CONSOLE_SVG_FORMAT), unique_id="terminal")


if __name__ == "__main__":
    sys.stdout.write(picture(sys.stdin.read(), sys.argv[1]))
