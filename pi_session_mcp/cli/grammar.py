"""The tree of commands as plain values, read from Typer. Completions and the manual page are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES: Final = "<files>"
"""A value of an option or operand that stands for any path of this machine."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `values` are what may follow it, where that is known."""

    name: str
    help: str
    takes_value: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One command. `path` is the words after the program's name; `operands` are what may follow them."""

    path: tuple[str, ...]
    short: str
    help: str
    options: tuple[Option, ...]
    operands: tuple[str, ...]
    commands: tuple[Node, ...]

    def walk(self) -> Iterator[Node]:
        """This command and all below it, in the order of the help texts."""
        yield self
        for command in self.commands:
            yield from command.walk()


def read(app: typer.Typer) -> Node:
    """The whole tree of `app`."""
    return _node(typer.main.get_command(app), ())


def _node(command: Any, path: tuple[str, ...]) -> Node:
    context = typer.Context(command)
    parameters = command.get_params(context)
    below = getattr(command, "commands", {})
    return Node(
        path=path,
        short=command.get_short_help_str(limit=200),
        help=command.help or "",
        options=tuple(_option(one, context) for one in parameters if one.opts[0].startswith("-")),
        operands=tuple(
            value for one in parameters if not one.opts[0].startswith("-") for value in _values(one, context)
        ),
        commands=tuple(_node(child, (*path, name)) for name, child in below.items()),
    )


def _option(parameter: Any, context: Any) -> Option:
    takes_value = not parameter.is_flag
    values = _values(parameter, context) if takes_value else ()
    return Option(max(parameter.opts, key=len), parameter.help or "", takes_value, values)


def _values(parameter: Any, context: Any) -> tuple[str, ...]:
    return tuple(item.value for item in parameter.shell_complete(context, ""))
