"""Keeps the program's laid-out help pages equal to its grammar: writes them, or with `--check` only compares."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.outcome import Document
from pi_session_mcp.cli.pages import FILE, WIDTHS
from pi_session_mcp.cli.program import build, parse
from pi_session_mcp.cli.stage import ReportStage

if TYPE_CHECKING:
    from collections.abc import Iterator


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them when asked to check; 1 if one differs."""
    wanted = text()
    if "--check" not in arguments:
        FILE.write_text(wanted, encoding="utf-8")
        return 0
    same = FILE.is_file() and FILE.read_text(encoding="utf-8") == wanted
    if not same:
        print(f"{FILE.name} differs from the program; run: python tools/help_pages.py")
    return int(not same)


def text() -> str:
    """All pages at all widths, as the file has them."""
    pages = {str(width): dict(_pages(width)) for width in WIDTHS}
    return json.dumps(pages, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _pages(width: int) -> Iterator[tuple[str, str]]:
    os.environ["COLUMNS"] = str(width)
    for node in read(build()).walk():
        answer = parse([*node.path, "--help"])(ReportStage())
        if not isinstance(answer, Document):
            raise TypeError(node.path)
        yield " ".join(node.path), answer.text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
