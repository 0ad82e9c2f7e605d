"""Questions to a person at a terminal. They go to standard error: standard output is for the command's answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.nearest import nearest
from pi_session_mcp.cli.render import visible
from pi_session_mcp.cli.streams import is_terminal, write_err

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_CHOICES: Final = 60
"""How many names are listed. When there are more, the person is asked for a part of the name."""


def somebody_is_there() -> bool:
    """Whether a person could see a question and answer it."""
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
    """What is typed until Enter. An interrupt adds a line break, so that the next text begins on a new line."""
    try:
        write_err(prompt)
        return sys.stdin.readline()
    except KeyboardInterrupt:
        write_err("\n")
        raise


def choose(
    question: str, names: Sequence[str], default: str | None = None, *, doubted: str | None = None
) -> str | None:
    """One of `names`, by its number or its name. `None`: no answer will come.

    A name that is not among them may be right, but is more often misspelt. So it counts only when it is typed twice in
    a row; `doubted` was given once already. Typing a part of a name lists the names that have it.
    """
    shown = _alike(doubted, names) if doubted else tuple(names)
    while True:
        if doubted is not None:
            write_err(visible(f"That is none of the {len(names)} names. Type it again to use it all the same.") + "\n")
        _show(shown, len(names))
        answer = ask(f"{question}, by number or name" if shown else question, default)
        if answer is None or answer in names or answer == doubted:
            return answer
        if answer.isdecimal() and 1 <= int(answer) <= len(shown[:_MAX_CHOICES]):
            return shown[int(answer) - 1]
        doubted, shown = answer, _alike(answer, names)


def _show(names: Sequence[str], of: int) -> None:
    for number, name in enumerate(names[:_MAX_CHOICES], 1):
        write_err(visible(f"{number:>4}  {name}") + "\n")
    hidden = of - len(names[:_MAX_CHOICES])
    if hidden:
        write_err(f"      and {hidden} more; type a part of a name to see those that have it\n")


def _alike(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names that contain `text`; if none does, those with a similar spelling; if there is none, all."""
    having = tuple(name for name in names if text.lower() in name.lower())
    return having or nearest(text, names) or tuple(names)
