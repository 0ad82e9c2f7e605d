"""How a command is shown while it runs: to a person, or not at all when a JSON report follows."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pi_session_mcp.cli.render import human_text
from pi_session_mcp.cli.streams import form_of, is_terminal, write_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from pi_session_mcp.cli.outcome import Block, Say


class PersonStage:
    """Shows blocks on standard output as they come."""

    def block(self, block: Block) -> None:
        """Write `block` at once, so that a person can follow long work step by step."""
        write_out(human_text((block,), form_of(sys.stdout, os.environ)))

    def working(self, what: str) -> AbstractContextManager[Say]:
        """A spinner with `what` on standard error, if that is a terminal."""
        return working(what)


class ReportStage:
    """Shows nothing on standard output: the JSON report is the only thing there."""

    def block(self, block: Block) -> None:
        """Do nothing: the report has the content of the block."""

    def working(self, what: str) -> AbstractContextManager[Say]:
        """A spinner with `what` on standard error, if that is a terminal."""
        return working(what)


def working(what: str) -> AbstractContextManager[Say]:
    """Say on standard error, only on a terminal, that `what` goes on until the context ends."""
    if not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        return nullcontext(_say_nothing)
    return _spinner(what)


@contextmanager
def _spinner(what: str) -> Iterator[Say]:
    from rich.console import Console
    from rich.text import Text

    form = form_of(sys.stderr, os.environ)
    console = Console(stderr=True, width=form.columns, no_color=not form.colour)
    with console.status(Text(what), spinner="dots" if form.unicode else "line") as status:
        yield lambda more: status.update(Text(more))


def _say_nothing(what: str) -> None:
    """There is no terminal to say it on."""
