"""A result says the same as text and as structure, in valid UTF-8, and within its bound."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.errors import MESSAGES, Code
from pi_session_mcp.server.replies import failure, success
from pi_session_mcp.server.wire.frames import encode
from pi_session_mcp.server.wire.protocol import Call, Identity, Protocol, Reply

ANY_TEXT = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize("code", Code)
def test_a_failure_carries_its_code_and_fixed_message_and_nothing_else(code: Code) -> None:
    result = failure(code)

    assert result.structure == {"ok": False, "error": {"code": code.value, "message": MESSAGES[code]}}
    assert json.loads(result.text) == result.structure
    assert result.is_error


def test_a_success_says_so_first() -> None:
    result = success(turn={"state": "running"})

    assert result.text == '{"ok":true,"turn":{"state":"running"}}'
    assert result.structure == {"ok": True, "turn": {"state": "running"}}
    assert not result.is_error


@given(ANY_TEXT, ANY_TEXT)
def test_text_and_structure_are_equal_and_valid_utf8_whatever_the_answer(first: str, second: str) -> None:
    result = success(turn={"assistantText": first}, sessions=[{"model": second}])

    assert json.loads(result.text.encode().decode()) == result.structure
    frame_of(result).decode()


def test_a_lone_surrogate_becomes_the_replacement_character_and_the_rest_stays() -> None:
    result = success(turn={"assistantText": "a\ud800b\udfffc\U0001f600", "truncated": False})

    assert result.structure == {
        "ok": True,
        "turn": {"assistantText": "a\ufffdb\ufffdc\U0001f600", "truncated": False},
    }
    assert json.loads(result.text) == result.structure


@pytest.mark.parametrize("character", ["\x00", "\x0b", "\x85", "\u2028", "\u2029", "\r", "\n"])
def test_a_character_that_ends_a_line_somewhere_passes_and_ends_no_line(character: str) -> None:
    result = success(turn={"assistantText": f"\u00e9{character}b"})

    assert result.structure == {"ok": True, "turn": {"assistantText": f"\u00e9{character}b"}}
    assert json.loads(result.text) == result.structure
    assert len(result.text.splitlines()) == 1


def test_an_empty_answer_is_visibly_empty() -> None:
    assert '"assistantText":""' in success(turn={"assistantText": ""}).text


@pytest.mark.parametrize(
    ("answer", "most_bytes"),
    [
        ("a" * 65_536, 2 * 65_536 + 512),
        ("\u6f22" * 21_845, 2 * 65_536 + 512),
        ("\U0001f600" * 16_384, 2 * 65_536 + 512),
        ('"' * 65_536, 6 * 65_536 + 512),
        ("\x00" * 65_536, 13 * 65_536 + 512),
    ],
    ids=["ascii", "han", "emoji", "quotes", "NUL"],
)
def test_the_longest_answer_has_a_bounded_frame(answer: str, most_bytes: int) -> None:
    frame = frame_of(success(turn={"assistantText": answer, "truncated": True}))

    assert 2 * 65_535 < len(frame) <= most_bytes


def frame_of(reply: Reply) -> bytes:
    """The reply as bytes on the wire."""
    protocol = Protocol(Identity("name", "1", "", []))
    return encode(protocol.result(Call(1, "pi_turn_get", None, None), reply))
