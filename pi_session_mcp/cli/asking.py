"""Questions to a person at a terminal: asked on standard error, so that standard output stays the command's answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pi_session_mcp.cli.render import visible
from pi_session_mcp.cli.streams import is_terminal, write_err

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_CHOICES = 20


def somebody_is_there() -> bool:
    """Whether a question would be seen and could be answered."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def ask(question: str, default: str | None = None) -> str | None:
    """The answer to `question`, or `default` when only Enter was pressed. `None`: no answer will come."""
    while True:
        line = _line(visible(f"{question} [{default}]: " if default else f"{question}: "))
        if not line:
            write_err("\n")
            return None
        answer = line.strip() or default
        if answer:
            return answer


def _line(prompt: str) -> str:
    """What is typed until Enter; after an interrupt, what is said next begins on a line of its own."""
    try:
        write_err(prompt)
        return sys.stdin.readline()
    except KeyboardInterrupt:
        write_err("\n")
        raise


def choose(question: str, names: Sequence[str], default: str | None = None) -> str | None:
    """One of `names` by its number or its name; another name counts as well. `None`: no answer will come."""
    shown = names[:_MAX_CHOICES]
    for number, name in enumerate(shown, 1):
        write_err(visible(f"{number:>4}  {name}") + "\n")
    if len(names) > len(shown):
        write_err(f"      and {len(names) - len(shown)} more; their names are understood as well\n")
    answer = ask(f"{question}, by number or name" if shown else question, default)
    if answer is not None and answer.isdecimal() and 1 <= int(answer) <= len(shown) and answer not in names:
        return shown[int(answer) - 1]
    return answer
