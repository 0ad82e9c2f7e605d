"""Keeps the help texts in docs/commands.md equal to the program: rewrites them, or with `--check` only compares."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from pi_session_mcp.cli.outcome import Document
from pi_session_mcp.cli.program import PROGRAM, build, parse
from pi_session_mcp.cli.stage import ReportStage

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: Final = Path("docs/commands.md")
BEGIN: Final = "<!-- The help texts below are written by tools/command_reference.py. -->\n"
END: Final = "<!-- End of the help texts. -->\n"
COLUMNS: Final = 80


def main(arguments: list[str]) -> int:
    """Write the document, or compare it when asked to check; 1 if it differs."""
    os.environ["COLUMNS"] = str(COLUMNS)
    before = DOCUMENT.read_text(encoding="utf-8")
    after = with_reference(before)
    if "--check" not in arguments:
        DOCUMENT.write_text(after, encoding="utf-8")
        return 0
    if before != after:
        print(f"{DOCUMENT} differs from the program; run: python tools/command_reference.py")
    return int(before != after)


def with_reference(document: str) -> str:
    """`document` with the text between its two marks replaced by the program's help texts."""
    head, _, rest = document.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{reference()}{END}{tail}"


def reference() -> str:
    """Every command's help text under a heading of its own."""
    sections = (f"### `{' '.join((PROGRAM, *path))}`\n\n```text\n{help_text(path)}```\n\n" for path in paths())
    return "".join(sections)


def help_text(path: tuple[str, ...]) -> str:
    """What `--help` prints for the command at `path`, without spaces at line ends."""
    answer = parse([*path, "--help"])(ReportStage())
    if not isinstance(answer, Document):
        raise TypeError(path)
    return "".join(f"{line.rstrip()}\n" for line in answer.text.splitlines())


def paths() -> Iterator[tuple[str, ...]]:
    """The path of every command, the program itself first."""
    yield ()
    yield from _below(typer.main.get_command(build()), ())


def _below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield (*path, name)
        yield from _below(child, (*path, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
