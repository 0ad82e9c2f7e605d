"""The manual page, made from the program's help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.program import PROGRAM, build
from tools.generated import Generated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.cli.grammar import Node

PAGE: Final = Path("man/pi-session-mcp.1")
_VERBATIM: Final = "\b\n"
_STATUSES: Final = (
    ("0", "Success."),
    ("1", "Failure, or warnings of the doctor."),
    ("2", "A check failed."),
    ("64", "The command line was not understood."),
    ("130", "Interrupted."),
    ("143", "Terminated."),
)


def files() -> Iterator[Generated]:
    """The page."""
    yield Generated(PAGE, text())


def text() -> str:
    """The whole page."""
    return "".join(f"{line}\n" for line in _page(read(build())))


def _page(root: Node) -> Iterator[str]:
    purpose, *explained = root.help.split("\n\n")
    yield '.\\" Written by tools/generate.py.'
    yield from (".TH PI-SESSION-MCP 1", ".nh", ".ad l")
    yield from (".SH NAME", f"{_shown(PROGRAM)} \\- {_shown(purpose[0].lower() + purpose[1:].rstrip('.'))}")
    yield from (".SH SYNOPSIS", f".B {_shown(PROGRAM)}", "[OPTION]... COMMAND [ARGUMENT]...", ".SH DESCRIPTION")
    yield from _paragraphs(explained)
    yield from _options(root)
    yield ".SH COMMANDS"
    for command in list(root.walk())[1:]:
        if not command.commands:
            yield from _command(command)
    yield ".SH EXIT STATUS"
    for status, meaning in _STATUSES:
        yield from (".TP", f".B {status}", _shown(meaning))


def _command(command: Node) -> Iterator[str]:
    yield f'.SS "{_shown(" ".join(command.path))}"'
    yield from _paragraphs(command.help.split("\n\n"))
    yield from _options(replace(command, options=tuple(one for one in command.options if one.name != "--help")))


def _paragraphs(paragraphs: list[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        yield ".PP"
        if paragraph.startswith(_VERBATIM):
            yield from (".nf", *map(_shown, paragraph.removeprefix(_VERBATIM).splitlines()), ".fi")
        else:
            yield from map(_shown, paragraph.splitlines())


def _options(node: Node) -> Iterator[str]:
    for option in node.options:
        value = " \\fIVALUE\\fR" if option.takes_value else ""
        yield from (".TP", f"\\fB{_shown(option.name)}\\fR{value}", _shown(option.help))


def _shown(line: str) -> str:
    """`line` as it is shown: nothing in it is a request, and each hyphen can be copied as one."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
