"""The pages about tools and errors say what the program does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from pi_session_mcp.diagnostics import Event
from pi_session_mcp.errors import MESSAGES, Code, ConfigCode, Stage
from pi_session_mcp.server.catalog import PROMPT_MAX_CHARACTERS, TOOLS, WAIT_MAX_MS
from pi_session_mcp.sessions.answer import MAX_ANSWER_BYTES
from tests.support.catalog_docs import PAGE, parts_of, with_made_parts

DOCS: Final = Path(__file__).parents[3] / "docs"
TOOLS_PAGE: Final = PAGE.read_text("utf-8")
ERRORS_PAGE: Final = (DOCS / "errors.md").read_text("utf-8")


def test_the_parts_made_from_the_catalog_are_equal_to_it() -> None:
    assert with_made_parts(TOOLS_PAGE) == TOOLS_PAGE
    assert parts_of(TOOLS_PAGE) == ["overview", *(tool["name"] for tool in TOOLS)]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool["name"]))
def test_the_results_shown_for_a_tool_fit_its_schema(tool: dict[str, Any]) -> None:
    shown = _examples(_section(TOOLS_PAGE, tool["name"]))

    assert shown
    for result in shown:
        Draft202012Validator(tool["outputSchema"]).validate(result)


def test_the_four_calls_of_the_delegation_are_valid() -> None:
    calls = _examples(_section(TOOLS_PAGE, "A delegation in four calls"))
    names = ["pi_session_start", "pi_session_prompt", "pi_turn_get", "pi_session_close"]

    for name, arguments in zip(names, calls, strict=True):
        schema = next(tool["inputSchema"] for tool in TOOLS if tool["name"] == name)
        Draft202012Validator(schema).validate(arguments)


def test_the_errors_named_for_the_tools_exist_and_together_are_all() -> None:
    reference = TOOLS_PAGE.partition("## Reference")[2]
    everywhere = {"invalid_arguments", "server_stopping", "internal_error"}
    named = {
        code for line in re.findall(r"^Errors: (.*?)\.$", reference, re.MULTILINE | re.DOTALL) for code in _quoted(line)
    }

    assert named | everywhere == set(Code)


def test_every_code_has_one_entry_with_its_message_its_meaning_and_a_way_out() -> None:
    rows = [row for row in _rows(ERRORS_PAGE) if len(row) == 4 and row[0].startswith("`")]

    assert {_bare(code): message for code, message, _, _ in rows} == {code.value: MESSAGES[code] for code in Code}
    assert len(rows) == len(Code)
    assert all(meaning and way_out for _, _, meaning, way_out in rows)


def test_every_configuration_code_event_and_stage_has_one_entry() -> None:
    three = [_bare(row[0]) for row in _rows(_section(ERRORS_PAGE, "Refused configuration")) if row[0].startswith("`")]
    two = [_bare(row[0]) for row in _rows(_section(ERRORS_PAGE, "Diagnostics")) if row[0].startswith("`")]

    assert sorted(three) == sorted(ConfigCode)
    assert sorted(two) == sorted([*Event, *Stage])


def test_the_limits_are_those_of_the_program() -> None:
    scope = (DOCS / "scope.md").read_text("utf-8")

    assert f"{PROMPT_MAX_CHARACTERS:,} characters" in scope
    assert f"{MAX_ANSWER_BYTES:,} bytes" in scope
    assert f"{MAX_ANSWER_BYTES:,} bytes" in TOOLS_PAGE
    assert f"{WAIT_MAX_MS // 1000} seconds" in scope


@pytest.mark.parametrize("page", ["tools.md", "errors.md", "scope.md"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (DOCS / page).read_text("utf-8")):
        name, _, place = target.partition("#")
        text = (DOCS / (name or page)).read_text("utf-8")
        anchors = {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        assert not place or place in anchors, target


def _section(page: str, title: str) -> str:
    """What stands below a heading, up to the next one of any level down to its own."""
    found = re.search(rf"^(#+) {re.escape(title)}$(.*?)(?=^#{{1,3}} |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[2]


def _examples(text: str) -> list[Any]:
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def _quoted(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


def _bare(cell: str) -> str:
    return cell.strip("`")
