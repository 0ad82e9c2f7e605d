"""The help pages that are shipped laid out: every command's, at a few widths."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.help_pages import WIDTHS
from pi_session_mcp.cli.outcome import Document
from pi_session_mcp.cli.program import build, parse
from pi_session_mcp.cli.progress import ReportStage
from tools.generated import Generated

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE: Final = Path("pi_session_mcp/cli/help.json")


def files() -> Iterator[Generated]:
    """All pages at all widths, as one file."""
    pages = {str(width): {" ".join(path): page(path, width) for path in paths()} for width in WIDTHS}
    yield Generated(FILE, json.dumps(pages, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def paths() -> list[tuple[str, ...]]:
    """The path of every command, the program itself first."""
    return sorted(node.path for node in read(build()).walk())


def page(path: tuple[str, ...], columns: int) -> str:
    """What `--help` prints for the command at `path`, on a terminal that is `columns` wide."""
    with _columns(columns):
        answer = parse([*path, "--help"])(ReportStage())
    if not isinstance(answer, Document):
        raise TypeError(path)
    return answer.text


@contextmanager
def _columns(columns: int) -> Iterator[None]:
    """Whatever is laid out is laid out for this width; afterwards the environment is as it was."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
