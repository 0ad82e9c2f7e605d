"""The catalog of tools is exact, portable, and small enough for a client's prompt."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from pi_session_mcp import deadlines
from pi_session_mcp.server import catalog
from pi_session_mcp.server.catalog import INSTRUCTIONS, TOOLS

if TYPE_CHECKING:
    from types import ModuleType

READ_ONLY, DESTRUCTIVE, IDEMPOTENT, OPEN_WORLD = "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"
BY_NAME = {tool["name"]: tool for tool in TOOLS}


def test_there_are_exactly_eight_tools() -> None:
    assert [tool["name"] for tool in TOOLS] == [
        "pi_capabilities_get",
        "pi_session_start",
        "pi_session_list",
        "pi_session_get",
        "pi_session_prompt",
        "pi_turn_get",
        "pi_session_abort",
        "pi_session_close",
    ]


@pytest.mark.parametrize(
    ("name", "true_hints"),
    [
        ("pi_capabilities_get", {READ_ONLY, IDEMPOTENT}),
        ("pi_session_start", set()),
        ("pi_session_list", {READ_ONLY, IDEMPOTENT}),
        ("pi_session_get", {READ_ONLY, IDEMPOTENT}),
        ("pi_session_prompt", {DESTRUCTIVE, OPEN_WORLD}),
        ("pi_turn_get", {READ_ONLY, IDEMPOTENT}),
        ("pi_session_abort", {DESTRUCTIVE, IDEMPOTENT}),
        ("pi_session_close", {DESTRUCTIVE, IDEMPOTENT}),
    ],
)
def test_every_hint_is_said_and_truthful(name: str, true_hints: set[str]) -> None:
    annotations = BY_NAME[name]["annotations"]

    assert set(annotations) == {READ_ONLY, DESTRUCTIVE, IDEMPOTENT, OPEN_WORLD}
    assert {hint for hint, value in annotations.items() if value is True} == true_hints
    assert {hint for hint, value in annotations.items() if value is False} == set(annotations) - true_hints


@pytest.mark.parametrize(
    ("name", "required", "optional"),
    [
        ("pi_capabilities_get", [], []),
        ("pi_session_start", ["workspace"], ["executionProfile"]),
        ("pi_session_list", [], []),
        ("pi_session_get", ["sessionId"], []),
        ("pi_session_prompt", ["sessionId", "prompt"], ["waitMs"]),
        ("pi_turn_get", ["sessionId", "turnId"], ["waitMs"]),
        ("pi_session_abort", ["sessionId"], []),
        ("pi_session_close", ["sessionId"], []),
    ],
)
def test_the_inputs_are_strict_objects(name: str, required: list[str], optional: list[str]) -> None:
    schema = BY_NAME[name]["inputSchema"]

    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema.get("required", []) == required
    assert list(schema["properties"]) == required + optional


def test_the_bounds_are_those_of_the_contract() -> None:
    prompt = BY_NAME["pi_session_prompt"]["inputSchema"]["properties"]["prompt"]
    wait = BY_NAME["pi_turn_get"]["inputSchema"]["properties"]["waitMs"]

    assert (prompt["minLength"], prompt["maxLength"]) == (1, 100_000)
    assert (wait["type"], wait["minimum"], wait["maximum"], wait["default"]) == ("integer", 0, 50_000, 0)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool["name"]))
@pytest.mark.parametrize("kind", ["inputSchema", "outputSchema"])
def test_the_schemas_are_valid_and_free_of_what_clients_refuse(tool: dict[str, Any], kind: str) -> None:
    schema = tool[kind]

    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs"} & set(_keys(schema))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool["name"]))
def test_an_output_schema_takes_a_refusal_and_nothing_unsaid(tool: dict[str, Any]) -> None:
    output = Draft202012Validator(tool["outputSchema"])

    assert output.is_valid({"ok": False, "error": {"code": "internal_error", "message": "Operation failed"}})
    assert not output.is_valid({})
    assert not output.is_valid({"ok": True, "transcript": []})
    assert not output.is_valid({"ok": False, "error": {"code": "internal_error", "message": "m", "detail": "d"}})


def test_an_id_with_a_line_break_after_it_is_invalid_where_a_pattern_alone_would_pass() -> None:
    schema = Draft202012Validator(BY_NAME["pi_session_get"]["inputSchema"])
    session = "0b7f2f0e-8d5b-4a53-9c55-5f3b8f9d1c11"

    assert schema.is_valid({"sessionId": session})
    assert not schema.is_valid({"sessionId": session + "\n"})
    assert not schema.is_valid({"sessionId": session.upper()})


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool["name"]))
def test_every_tool_has_a_title_and_a_text_that_no_client_cuts(tool: dict[str, Any]) -> None:
    assert set(tool) == {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
    assert tool["title"]
    assert 0 < len(tool["description"]) <= 500


def test_the_instructions_are_short_and_lead_from_the_capabilities_to_the_close() -> None:
    steps = [
        "pi_capabilities_get",
        "pi_session_start",
        "pi_session_prompt",
        "waitMs",
        "pi_turn_get",
        "pi_session_close",
    ]

    assert len(INSTRUCTIONS) <= 800
    assert sorted(steps, key=INSTRUCTIONS.index) == steps


def test_the_catalog_is_json_and_needs_the_standard_library_only() -> None:
    assert json.loads(json.dumps(TOOLS)) == list(TOOLS)
    assert _imported(catalog) - {deadlines.__name__} <= sys.stdlib_module_names
    assert _imported(deadlines) <= sys.stdlib_module_names


def _imported(module: ModuleType) -> set[str | None]:
    tree = ast.parse(inspect.getsource(module))
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def _keys(schema: object) -> list[str]:
    if isinstance(schema, dict):
        return [*schema, *(key for value in schema.values() for key in _keys(value))]
    if isinstance(schema, list):
        return [key for value in schema for key in _keys(value)]
    return []
