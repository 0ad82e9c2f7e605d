"""An interrupt that comes while the command line is read ends the program like any other."""

from __future__ import annotations

import pytest
import typer

from pi_session_mcp.cli import program


def interrupted() -> None:
    """A command whose reading is interrupted."""
    raise KeyboardInterrupt


def test_an_interrupt_while_parsing_is_not_taken_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    command_line = typer.Typer()
    command_line.command()(interrupted)
    monkeypatch.setattr(program, "build", lambda: command_line)

    with pytest.raises(KeyboardInterrupt):
        program.parse([])
