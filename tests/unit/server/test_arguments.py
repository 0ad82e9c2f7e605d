"""Arguments are what the catalog's schemas say, and stricter where JSON Schema is lax."""

from __future__ import annotations

import json
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.server.arguments import (
    Arguments,
    NoArguments,
    PromptArguments,
    SessionArguments,
    StartArguments,
    TurnArguments,
    parse,
)
from pi_session_mcp.server.catalog import TOOLS

if TYPE_CHECKING:
    import uuid

SESSION = "0b7f2f0e-8d5b-4a53-9c55-5f3b8f9d1c11"
TURN = "7c6a3d1e-2f4b-4c8d-9e0f-1a2b3c4d5e6f"
PROMPT = {"sessionId": SESSION, "prompt": "look"}
WAIT = {"sessionId": SESSION, "turnId": TURN}


def refused(model: type[Arguments], sent: dict[str, Any]) -> bool:
    """Whether it is refused with the one code."""
    try:
        parse(model, sent)
    except Refusal as refusal:
        return refusal.code is Code.INVALID_ARGUMENTS
    return False


def test_a_refusal_does_not_carry_what_was_sent() -> None:
    with pytest.raises(Refusal) as refusal:
        parse(PromptArguments, {**PROMPT, "prompt": ["key" * 3], "key" * 4: "key" * 5})

    assert "keykey" not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize("sent", [None, {}])
def test_a_tool_without_arguments_takes_none(sent: dict[str, Any] | None) -> None:
    assert parse(NoArguments, sent) == NoArguments()


@pytest.mark.parametrize("model", [NoArguments, StartArguments, SessionArguments, PromptArguments, TurnArguments])
@pytest.mark.parametrize("extra", ["cwd", "session_id", "SessionId", "", "\ud800"])
def test_an_unknown_field_is_refused(model: type[Arguments], extra: str) -> None:
    assert refused(model, {"workspace": "w", **PROMPT, **WAIT, extra: "x"})


@pytest.mark.parametrize(
    ("model", "complete"),
    [
        (StartArguments, {"workspace": "w"}),
        (SessionArguments, {"sessionId": SESSION}),
        (PromptArguments, PROMPT),
        (TurnArguments, WAIT),
    ],
)
def test_a_missing_field_is_refused(model: type[Arguments], complete: dict[str, Any]) -> None:
    parse(model, complete)

    for field in complete:
        assert refused(model, {name: value for name, value in complete.items() if name != field})


@pytest.mark.parametrize("value", [None, 1, True, ["w"], {"alias": "w"}])
@pytest.mark.parametrize("field", ["workspace", "executionProfile"])
def test_an_alias_of_another_type_is_refused(field: str, value: object) -> None:
    assert refused(StartArguments, {"workspace": "w", field: value})


@given(st.text())
def test_any_text_may_be_an_alias_because_only_the_configuration_knows_them(text: str) -> None:
    start = parse(StartArguments, {"workspace": text, "executionProfile": text})

    assert (start.workspace, start.profile) == (text, text)


def test_a_profile_left_out_means_the_default_and_an_empty_one_does_not() -> None:
    assert parse(StartArguments, {"workspace": "w"}).profile is None
    assert parse(StartArguments, {"workspace": "w", "executionProfile": ""}).profile == ""


@given(st.uuids())
def test_every_uuid_as_it_is_printed_is_an_id(any_uuid: uuid.UUID) -> None:
    assert parse(SessionArguments, {"sessionId": str(any_uuid)}).session_id == str(any_uuid)


@pytest.mark.parametrize(
    "session",
    [
        SESSION.upper(),
        SESSION + "\n",
        "\n" + SESSION,
        SESSION[:-1],
        SESSION + "0",
        SESSION.replace("-", ""),
        SESSION.replace("-", "_"),
        "{" + SESSION + "}",
        "urn:uuid:" + SESSION,
        SESSION.replace("0b7f", "0b7g"),
        SESSION.replace("0", "\uff10"),
        SESSION.replace("0", "\u0660"),
        "",
        None,
        7,
        [SESSION],
    ],
)
def test_an_id_in_any_other_form_is_refused(session: object) -> None:
    assert refused(SessionArguments, {"sessionId": session})
    assert refused(TurnArguments, {"sessionId": SESSION, "turnId": session})


@pytest.mark.parametrize("character", ["a", "\u00e9", "\U0001f600", "\x00"])
def test_a_prompt_is_counted_in_code_points(character: str) -> None:
    for length, taken in [(0, False), (1, True), (100_000, True), (100_001, False)]:
        assert refused(PromptArguments, {**PROMPT, "prompt": character * length}) is not taken


@pytest.mark.parametrize("prompt", ["\ud800", "text \udfff text", None, 1, ["look"], b"look"])
def test_a_prompt_that_is_no_unicode_text_is_refused(prompt: object) -> None:
    assert refused(PromptArguments, {**PROMPT, "prompt": prompt})


@pytest.mark.parametrize(("model", "sent"), [(PromptArguments, PROMPT), (TurnArguments, WAIT)])
@pytest.mark.parametrize(
    ("wait_ms", "taken"),
    [
        (0, True),
        (50_000, True),
        (-1, False),
        (50_001, False),
        (10**400, False),
        (True, False),
        (False, False),
        (5.0, True),
        (50_000.0, True),
        (0.0, True),
        (-0.0, True),
        (-1.0, False),
        (50_001.0, False),
        (50_000.5, False),
        (1e300, False),
        (5e-324, False),
        (float("nan"), False),
        (float("inf"), False),
        ("5", False),
        (None, False),
    ],
)
def test_a_wait_is_a_whole_number_of_milliseconds_within_its_bounds(
    model: type[Arguments], sent: dict[str, Any], wait_ms: object, *, taken: bool
) -> None:
    assert refused(model, {**sent, "waitMs": wait_ms}) is not taken


@pytest.mark.parametrize("written", ["50000", "50000.0", "5e4", "5.0E+4"])
def test_every_way_to_write_an_integer_is_the_same_wait(written: str) -> None:
    wait_ms = parse(TurnArguments, {**WAIT, "waitMs": json.loads(written)}).wait_ms

    assert (wait_ms, type(wait_ms)) == (50_000, int)


@given(st.integers() | st.floats() | st.booleans() | st.none() | st.text())
def test_a_wait_is_taken_exactly_when_it_fits_the_published_schema(wait_ms: object) -> None:
    schema = next(tool["inputSchema"] for tool in TOOLS if tool["name"] == "pi_turn_get")
    sent = {**WAIT, "waitMs": wait_ms}

    assert refused(TurnArguments, sent) is not Draft202012Validator(schema).is_valid(sent)


def test_no_wait_is_said_as_zero() -> None:
    assert parse(PromptArguments, PROMPT).wait_ms == 0
    assert parse(TurnArguments, WAIT).wait_ms == 0


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["sessionId", "turnId", "waitMs", "prompt", "x"]) | st.text(), JSON_VALUES))
def test_whatever_json_is_sent_is_parsed_or_refused(sent: dict[str, Any]) -> None:
    for model in (NoArguments, StartArguments, SessionArguments, PromptArguments, TurnArguments):
        refused(model, sent)
