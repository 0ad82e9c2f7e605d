"""The operators' page on the configuration says what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pi_session_mcp.config.load import KNOWN_FIELDS, interpret
from pi_session_mcp.config.rules import Rule
from pi_session_mcp.errors import ConfigCode
from tests.unit.config.given import HERE

PAGE: Final = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next one of its level."""
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def first_cells(text: str) -> list[str]:
    """The first cell of every row of the tables in `text`, less heads and rules."""
    cells = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    return [cell for cell, following in zip(cells, [*cells[1:], ""], strict=True) if "---" not in cell + following]


def test_the_rules_are_listed_in_order() -> None:
    assert first_cells(section("Rules")) == [rule.value for rule in Rule]


def test_no_two_rules_share_a_sentence() -> None:
    assert len(Rule.__members__) == len(list(Rule))


def test_every_code_is_explained() -> None:
    assert first_cells(section("When the file is refused")) == [f"`{code}`" for code in ConfigCode]


def test_every_field_is_described() -> None:
    described = set(re.findall(r"`([A-Za-z$]+)`", section("Fields")))

    assert described >= KNOWN_FIELDS


def test_the_examples_rule_and_file_are_real() -> None:
    shown = re.search(r'"rule":"([^"]+)"', PAGE)
    assert shown is not None
    assert shown[1] == Rule.THINKING_LEVEL

    smallest = PAGE.split("```json\n", 1)[1].split("```", 1)[0]
    assert interpret(smallest.encode(), HERE).default_profile == "safe-readonly"
