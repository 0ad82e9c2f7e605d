"""Every command that a text of ours names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pi_session_mcp.cli.outcome import Document
from pi_session_mcp.cli.program import parse
from pi_session_mcp.cli.progress import ReportStage
from pi_session_mcp.runtime.problem import REMEDIATIONS
from pi_session_mcp.runtime.result import INSTALL_REMEDIATIONS

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
ADVICE = sorted({text for text in (*REMEDIATIONS.values(), *INSTALL_REMEDIATIONS.values()) if text is not None})

_IN_CODE = re.compile(r"`pi-session-mcp((?: [a-z-]+)+)[^`]*`")


def commands_in(text: str) -> set[tuple[str, ...]]:
    """The commands of ours that stand in code spans, without their options and operands."""
    return {tuple(word for word in found.split() if not word.startswith("-")) for found in _IN_CODE.findall(text)}


@pytest.mark.parametrize("text", [*ADVICE, *(path.read_text(encoding="utf-8") for path in DOCUMENTS)], ids=lambda _: "")
def test_every_command_that_is_named_explains_itself(text: str) -> None:
    for command in commands_in(text):
        answer = parse([*command, "--help"])(ReportStage())

        assert isinstance(answer, Document), command


def test_commands_are_found_in_advice() -> None:
    assert commands_in("Run `pi-session-mcp runtime install --json` or `pi-session-mcp demo`.") == {
        ("runtime", "install"),
        ("demo",),
    }
