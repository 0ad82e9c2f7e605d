"""How an answer is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.cli.outcome import Document, Facts, Json, Line, Mark, Misuse, Outcome, Prose, Verbatim
from pi_session_mcp.cli.render import exit_status_of, failure_report, human_text, json_report, misuse_text, visible
from pi_session_mcp.cli.streams import MAX_COLUMNS, MIN_COLUMNS, Form
from pi_session_mcp.errors import ExitStatus

NARROW = Form(columns=MIN_COLUMNS, colour=False, unicode=True)
WIDE = Form(columns=MAX_COLUMNS, colour=False, unicode=True)
BLOCKS = (
    Prose("A sentence that is longer than forty columns and has to be wrapped somewhere."),
    Line(Mark.OK, "ok", "a-name-without-any-space-that-is-longer-than-forty-columns"),
    Line(Mark.FAILED, "failed", "words that wrap onto a second line below the first"),
    Facts((("fingerprint", "sha256:" + "0" * 64), ("n", "1"))),
    Verbatim("-old\n+new\n" + "x" * 90),
)


@pytest.mark.parametrize("columns", [MIN_COLUMNS, 41, 80, MAX_COLUMNS])
def test_text_for_people_is_never_wider_than_the_form(columns: int) -> None:
    text = human_text(BLOCKS, Form(columns=columns, colour=False, unicode=True))

    assert max(map(len, text.splitlines())) <= columns


def test_nothing_is_lost_when_text_is_folded() -> None:
    text = human_text(BLOCKS, NARROW)

    assert "sha256:" + "0" * 64 in "".join(text.split())
    assert "x" * 90 in "".join(text.split())
    assert "…" not in text


def test_no_escape_is_written_without_colour_and_some_are_with_it() -> None:
    assert "\x1b" not in human_text(BLOCKS, WIDE)
    assert "\x1b" in human_text(BLOCKS, Form(columns=80, colour=True, unicode=True))


def test_states_are_words_and_symbols_so_that_colour_is_not_needed() -> None:
    assert human_text((Line(Mark.OK, "valid", "It is."),), WIDE) == "✓ valid       It is.\n"


def test_symbols_are_ascii_where_the_stream_cannot_say_more() -> None:
    blocks = tuple(Line(mark, "word", "text") for mark in Mark)

    assert human_text(blocks, Form(columns=80, colour=False, unicode=False)).isascii()


def test_foreign_text_is_no_markup() -> None:
    assert "[red]x[/red] :smile: [/]" in human_text((Line(Mark.NOTE, "n", "[red]x[/red] :smile: [/]"),), WIDE)


def test_foreign_text_cannot_steer_the_terminal() -> None:
    hostile = "a\x1b]0;title\x07b\x9b31mc\u202ed\x00e\rf"

    for block in (Line(Mark.NOTE, "n", hostile), Facts(((hostile, hostile),)), Verbatim(hostile), Prose(hostile)):
        text = human_text((block,), WIDE)
        assert not set(text) & set("\x1b\x07\x9b\u202e\x00\r")


@given(st.text())
def test_visible_text_keeps_its_length_and_holds_no_control_character(text: str) -> None:
    shown = visible(text)

    assert len(shown) == len(text)
    assert shown.isprintable() or not any(c in shown for c in "\x00\x1b\n\r\x85\u2028\u202e")


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(min_size=1).filter(lambda name: name not in {"schemaVersion", "ok", "exitCode"}), _values)
)
def test_a_report_is_one_line_of_ascii_that_parses_to_its_members(members: dict[str, Json]) -> None:
    text = json_report(Outcome(ExitStatus.OK, members))

    assert text.isascii()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert json.loads(text) == {"schemaVersion": 1, "ok": True, "exitCode": 0, **members}


@pytest.mark.parametrize("status", list(ExitStatus))
def test_ok_says_whether_the_exit_code_is_zero(status: ExitStatus) -> None:
    report = json.loads(json_report(Outcome(status)))

    assert report == {"schemaVersion": 1, "ok": status == 0, "exitCode": int(status)}


def test_a_failure_without_an_answer_has_a_report_too() -> None:
    assert json.loads(failure_report(ExitStatus.INTERRUPTED, "interrupted")) == {
        "schemaVersion": 1,
        "ok": False,
        "exitCode": 130,
        "code": "interrupted",
    }


def test_misuse_exits_with_64_and_names_what_is_valid_in_both_forms() -> None:
    misuse = Misuse("The command is missing or unknown.", (("commands", ("check", "schema")),))

    assert exit_status_of(misuse) is ExitStatus.MISUSE
    assert json.loads(json_report(misuse))["valid"] == {"commands": ["check", "schema"]}
    assert "check, schema" in misuse_text(misuse, NARROW)


def test_a_document_stands_in_its_report_as_text_or_as_the_value_that_it_shows() -> None:
    assert json.loads(json_report(Document("t\n", "help", ExitStatus.OK)))["help"] == "t\n"
    assert json.loads(json_report(Document("p 1\n", "version", ExitStatus.OK, reported="1")))["version"] == "1"
