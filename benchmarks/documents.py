"""Where results go: between the marks of a document, and lines for the person who waits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def between(document: str, mark: str, text: str) -> str:
    """The document with `text` between the two marks of that name. Pure. Raises `ValueError` without both."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, first, rest = document.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError("the document has no place for the result", mark)
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def require_marks(path: Path, marks: Iterable[str]) -> None:
    """Raise `ValueError` unless a file has both marks of each name: better before an hour of measuring than after."""
    for mark in marks:
        between(path.read_text("utf-8"), mark, "")


def write_between(path: Path, mark: str, text: str) -> None:
    """Put `text` between the two marks of a file. Raises `ValueError` when it does not have both."""
    path.write_text(between(path.read_text("utf-8"), mark, text), "utf-8")


def say(line: str) -> None:
    """One line of progress, apart from the results."""
    print(line, file=sys.stderr, flush=True)
