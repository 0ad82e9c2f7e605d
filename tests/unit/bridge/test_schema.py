"""Arguments are judged by their tool's schema, and by nothing outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.bridge.schema import Arguments, is_usable_schema

if TYPE_CHECKING:
    from pathlib import Path

INTEGER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        ({"n": 7}, True),
        ({"n": -0}, True),
        ({"n": "7"}, False),
        ({"n": 1.5}, False),
        ({"n": True}, False),
        ({"n": None}, False),
        ({}, False),
        ({"n": 7, "m": 1}, False),
        ([7], False),
        (None, False),
        ("n", False),
    ],
)
def test_only_arguments_that_keep_to_the_schema_are_accepted(arguments: object, accepted: bool) -> None:  # noqa: FBT001
    assert Arguments(INTEGER).accept(arguments) is accepted


def test_the_drafts_that_schemas_name_are_kept() -> None:
    old: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1, "exclusiveMinimum": True}},
    }
    assert is_usable_schema(old)
    assert Arguments(old).accept({"n": 2})
    assert not Arguments(old).accept({"n": 1})


@pytest.mark.parametrize(
    "reference",
    ["http://127.0.0.1:9/schema.json", "file:///etc/passwd", "other.json", "#/$defs/nowhere"],
)
def test_a_reference_that_leads_nowhere_inside_is_followed_nowhere(reference: str) -> None:
    outside = {"type": "object", "properties": {"n": {"$ref": reference}}}
    assert Arguments(outside).accept({})
    assert not Arguments(outside).accept({"n": 1})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what follows a reference by default warns while it does
def test_a_reference_to_a_file_that_is_there_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "anything.json").write_text("{}")
    outside = {"type": "object", "properties": {"n": {"$ref": (tmp_path / "anything.json").as_uri()}}}
    assert not Arguments(outside).accept({"n": 1})


def test_references_inside_are_followed_also_when_they_never_end() -> None:
    tree = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/node"}, "loop": {"$ref": "#/$defs/loop"}},
        "$defs": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False},
            "loop": {"$ref": "#/$defs/loop"},
        },
    }
    assert Arguments(tree).accept({"n": {"next": {"next": {}}}})
    assert not Arguments(tree).accept({"n": {"next": {"other": 1}}})
    assert not Arguments(tree).accept({"loop": 1})


def test_a_pattern_is_judged_where_it_can_be_read_and_left_to_pi_where_it_cannot() -> None:
    here = {"type": "object", "properties": {"n": {"type": "string", "pattern": "^a+$"}}}
    assert Arguments(here).accept({"n": "aa"})
    assert not Arguments(here).accept({"n": "b"})

    elsewhere = {"type": "object", "properties": {"n": {"type": "string", "pattern": "^\\p{L}+$"}}}
    assert is_usable_schema(elsewhere)
    assert Arguments(elsewhere).accept({"n": "ä"})
    assert not Arguments(elsewhere).accept({"n": 7})


def test_names_of_properties_whose_pattern_cannot_be_read_are_not_accepted() -> None:
    closed = {"type": "object", "patternProperties": {"\\p{L}": {}}, "additionalProperties": False}
    assert Arguments(closed).accept({})
    assert not Arguments(closed).accept({"a": 1})
