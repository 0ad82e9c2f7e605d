"""The text of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.sessions.answer import MAX_ANSWER_BYTES, Answer, answer_from


def test_an_empty_answer_is_an_empty_text() -> None:
    assert answer_from("") == Answer("", truncated=False)
    assert answer_from(" \r\n\t ") == Answer("", truncated=False)


def test_blank_space_around_the_answer_is_trimmed_and_inside_it_is_kept() -> None:
    assert answer_from("\n\n  first\n\n  second \u3000\ufeff").text == "first\n\n  second"


@pytest.mark.parametrize("character", ["\0", "\u2028", "\u2029", "\u0085", "\x1c"])
def test_characters_that_look_like_line_ends_or_nothing_pass_unchanged(character: str) -> None:
    text = f"{character}a{character}b{character}"

    assert answer_from(text) == Answer(text, truncated=False)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\ude00b", "\ufffdb"),
        ("\ud83dx\ude00", "\ufffdx\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        ("\ud83d\ude00", "\U0001f600"),
    ],
)
def test_a_lone_surrogate_is_replaced_and_a_pair_becomes_its_character(raw: str, text: str) -> None:
    assert answer_from(raw).text == text


def test_an_answer_of_exactly_the_limit_is_whole() -> None:
    assert answer_from("x" * MAX_ANSWER_BYTES) == Answer("x" * 65_536, truncated=False)


def test_an_answer_one_byte_longer_is_cut() -> None:
    assert answer_from("x" * (MAX_ANSWER_BYTES + 1)) == Answer("x" * 65_536, truncated=True)


@pytest.mark.parametrize(("character", "size"), [("é", 2), ("€", 3), ("😀", 4)])
@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_the_cut_never_splits_a_character(character: str, size: int, offset: int) -> None:
    answer = answer_from("x" * offset + character * 40_000)

    whole = (MAX_ANSWER_BYTES - offset) // size
    assert answer == Answer("x" * offset + character * whole, truncated=True)


def test_blank_space_that_the_cut_leaves_at_the_end_stays() -> None:
    assert answer_from("x" * (MAX_ANSWER_BYTES - 1) + " y").text.endswith("x ")


def test_what_trimming_removes_does_not_count_for_the_limit() -> None:
    assert not answer_from(" " * 10 + "x" * MAX_ANSWER_BYTES + "\n" * 10).truncated


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_any_text_becomes_valid_unicode_and_becoming_it_twice_changes_nothing(raw: str) -> None:
    answer = answer_from(raw)

    answer.text.encode("utf-8", "strict")
    assert answer_from(answer.text) == answer
