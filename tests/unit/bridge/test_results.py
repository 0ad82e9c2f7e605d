"""A model gets a result's content within a limit, and of a failure nothing but fixed words."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest

from pi_session_mcp.bridge.images import MAX_IMAGES, Image
from pi_session_mcp.bridge.results import (
    FAILED,
    MAX_ENVELOPE_BYTES,
    MAX_RESULT_BYTES,
    NO_CONTENT,
    OTHER_SHAPE,
    SOURCE_TOO_LARGE,
    TOO_LARGE,
    UNREADABLE_PART,
    Delivered,
    Failed,
    project,
)

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""One pixel."""
SVG: Final = base64.b64encode(b"<svg/>").decode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


# --- success ---------------------------------------------------------------------------------------------------------


def test_text_passes_as_it_is() -> None:
    odd = "\0 \u2028 \u0085 é 🙂 {}"
    assert project({"content": [text(odd), text("")]}) == Delivered((odd, ""))


def test_links_and_resources_of_text_pass_as_their_json_text() -> None:
    link = {"type": "resource_link", "uri": "file:///x", "name": "é"}
    resource = {"type": "resource", "resource": {"uri": "file:///y", "text": "said", "mimeType": "text/plain"}}
    odd = {"annotations": {}, "icons": [{"src": "data:image/png;base64,AAAA"}], "_meta": {}}

    assert project({"content": [{**link, **odd}, text("between"), {**resource, **odd}]}) == Delivered(
        (
            '{"type":"resource_link","uri":"file:///x","name":"é"}',
            "between",
            '{"type":"resource","resource":{"uri":"file:///y","text":"said","mimeType":"text/plain"}}',
        )
    )
    assert "AAAA" not in str(project({"content": [{**link, "uri": "data:image/png;base64,AAAA"}]}))


@pytest.mark.parametrize(
    ("block", "note"),
    [
        ({"type": "audio", "data": "AAAA", "mimeType": "audio/WAV; rate=8"}, "[Audio left out: audio/wav, 3 bytes.]"),
        ({"type": "audio", "data": PNG, "mimeType": "image/png"}, "[Audio left out: image/png, 70 bytes.]"),
        ({"type": "image", "data": "AAAA", "mimeType": "a b"}, "[Image left out: unknown type, 3 bytes.]"),
        ({"type": "image", "data": "AAAA"}, "[Image left out: unknown type, 3 bytes.]"),
        ({"type": "image", "data": SVG, "mimeType": "image/svg+xml"}, "[Image left out: image/svg+xml, 6 bytes.]"),
        (
            {"type": "resource", "resource": {"uri": "x", "blob": "AAAA", "mimeType": "application/pdf"}},
            "[Binary resource left out: application/pdf, 3 bytes.]",
        ),
    ],
)
def test_what_is_no_text_and_no_image_that_models_take_is_a_note(block: dict[str, Any], note: str) -> None:
    assert project({"content": [text("before"), block]}) == Delivered(("before", note))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "image", "data": PNG, "mimeType": "image/jpeg"},
        {"type": "image", "data": PNG},
        {"type": "resource", "resource": {"uri": "x", "blob": PNG}},
    ],
)
def test_an_image_that_models_take_comes_with_its_note_and_with_the_type_that_it_has(block: dict[str, Any]) -> None:
    outcome = project({"content": [text("before"), block]})
    assert isinstance(outcome, Delivered)
    assert outcome.images == (Image(1, PNG, "image/png"),)
    assert "image/png, 70 bytes" in outcome.texts[1]
    assert PNG not in outcome.texts[1]


def test_so_many_images_are_shown_and_no_more() -> None:
    outcome = project({"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}] * (MAX_IMAGES + 1)})
    assert isinstance(outcome, Delivered)
    assert [image.at for image in outcome.images] == list(range(MAX_IMAGES))
    assert len(set(outcome.texts)) == 1


def test_images_do_not_count_as_the_text_of_a_result() -> None:
    large = base64.b64encode(base64.b64decode(PNG) + bytes(MAX_RESULT_BYTES)).decode()
    outcome = project({"content": [{"type": "image", "data": large}]})
    assert isinstance(outcome, Delivered)
    assert len(outcome.images) == 1


@pytest.mark.parametrize(
    "block", [7, None, "x", {}, {"type": "text"}, {"type": "text", "text": 7}, {"type": "image", "data": "no base64"}]
)
def test_a_part_that_cannot_be_read_is_a_note_beside_what_can(block: object) -> None:
    assert project({"content": [block, text("said")]}) == Delivered((UNREADABLE_PART, "said"))
    assert project({"content": [block]}) == Failed(FAILED)
    assert project({"content": [block], "structuredContent": [1]}) == Delivered(("[1]", UNREADABLE_PART), [1])


def test_notes_do_not_make_a_result_larger_than_the_limit() -> None:
    assert project({"content": [text("said"), *[{}] * 60_000]}) == Delivered(("said", UNREADABLE_PART))
    assert project({"content": [{"type": "audio", "data": ""}] * 7_500}) == Failed(TOO_LARGE)


def test_a_result_without_content_is_told_as_it_is() -> None:
    assert project({}) == Delivered((NO_CONTENT,))
    assert project({"content": None, "_meta": {}}) == Delivered((NO_CONTENT,))
    assert project({"toolResult": {"n": 1}}) == Delivered(('{"toolResult":{"n":1}}', NO_CONTENT))
    assert project({"structuredContent": {"n": 1}}) == Delivered(('{"n":1}',), {"n": 1})


def test_a_result_of_another_shape_is_told_with_a_note() -> None:
    assert project({"content": [text("said")]}, other_shape=True) == Delivered(("said", OTHER_SHAPE))
    assert project({"content": [text("said")], "isError": True}, other_shape=True) == Failed(FAILED)


def test_structured_content_stays_as_details_and_is_text_when_there_is_no_other() -> None:
    structured = {"b": [1, 2.5, None], "a": "é"}

    assert project({"content": [text("said")], "structuredContent": structured}) == Delivered(("said",), structured)
    assert project({"content": [], "structuredContent": structured}) == Delivered(
        ('{"b":[1,2.5,null],"a":"é"}',), structured
    )


def test_an_empty_result_is_empty() -> None:
    assert project({"content": []}) == Delivered(())
    assert project({"content": [], "structuredContent": None}) == Delivered(())


@pytest.mark.parametrize("character", ["x", "é", "🙂"])
def test_a_result_may_be_as_large_as_the_limit_and_no_larger(character: str) -> None:
    overhead = len(b'{"content":[{"type":"text","text":""}]}')
    size = len(character.encode())
    count, rest = divmod(MAX_RESULT_BYTES - overhead, size)
    within = character * count + "y" * rest

    assert project({"content": [text(within)]}) == Delivered((within,))
    assert project({"content": [text(within + "y")]}) == Failed(TOO_LARGE)
    assert TOO_LARGE == "External MCP result exceeds the bridge limit of 262144 bytes; request less data."


def test_structured_content_counts_too() -> None:
    half = "x" * (MAX_RESULT_BYTES // 2)
    assert project({"content": [text(half)], "structuredContent": {"s": half}}) == Failed(TOO_LARGE)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**5000], ids=["nan", "infinite", "long"])
def test_a_number_that_json_cannot_say_fails(number: float) -> None:
    assert project({"content": [text("x")], "structuredContent": {"n": number}}) == Failed(FAILED)


# --- failure ---------------------------------------------------------------------------------------------------------

ENVELOPE = {"code": "SOURCE_TOO_LARGE", "message": "The file has 9000000 bytes; the limit is 1024."}
AS_TEXT = json.dumps(ENVELOPE)


def failed(**result: Any) -> str:
    outcome = project({"isError": True, **result})
    assert isinstance(outcome, Failed)
    assert outcome.text in {FAILED, SOURCE_TOO_LARGE}
    return outcome.text


def told(message: str) -> bool:
    """Whether an error with this message is told, in each of the three forms."""
    envelope = {"code": "SOURCE_TOO_LARGE", "message": message}
    block = text(json.dumps(envelope, ensure_ascii=False))
    forms = [
        failed(content=[block]),
        failed(content=[], structuredContent=envelope),
        failed(content=[block], structuredContent=envelope),
    ]
    assert len(set(forms)) == 1
    return forms[0] == SOURCE_TOO_LARGE


def test_an_error_says_nothing_of_its_text() -> None:
    assert failed(content=[text("canary")]) == FAILED == "External MCP operation failed"
    assert failed(content=[]) == FAILED
    assert failed(content=[], structuredContent={"error": "canary"}) == FAILED
    assert failed(content=[text("x" * MAX_RESULT_BYTES)]) == FAILED


def test_a_source_that_is_too_large_is_told_in_words_of_ours() -> None:
    assert told(ENVELOPE["message"])
    assert json.loads(SOURCE_TOO_LARGE) == {
        "code": "SOURCE_TOO_LARGE",
        "message": "Requested source exceeds the response limit; increase maxBytes.",
    }
    assert json.dumps(json.loads(SOURCE_TOO_LARGE), separators=(",", ":")) == SOURCE_TOO_LARGE


@pytest.mark.parametrize(
    "content",
    [
        [text(AS_TEXT), text(AS_TEXT)],
        [text(AS_TEXT), text("")],
        [{**text(AS_TEXT), "annotations": {}}],
        [{"type": "image", "data": AS_TEXT, "mimeType": "x"}],
        [text("SOURCE_TOO_LARGE")],
        [text(f"[{AS_TEXT}]")],
        [text(f"{AS_TEXT} {AS_TEXT}")],
        [text(f"\ufeff{AS_TEXT}")],
        [text(json.dumps({**ENVELOPE, "path": "x"}))],
        [text(json.dumps({"code": "SOURCE_TOO_LARGE"}))],
        [text(json.dumps({**ENVELOPE, "code": "source_too_large"}))],
        [text(json.dumps({**ENVELOPE, "message": 7}))],
        [text(json.dumps({**ENVELOPE, "message": None}))],
        [text('{"code": "SOURCE_TOO_LARGE", "message": "m", "message": "m"}')],
        [text('{"code": "other", "c\\u006fde": "SOURCE_TOO_LARGE", "message": "m"}')],
        [text('{"code": "SOURCE_TOO_LARGE", "message": "m",}')],
        [text('{"code": "SOURCE_TOO_LARGE", "message": "\\ud800"}')],
    ],
)
def test_an_error_that_is_not_exactly_that_object_is_not_told(content: list[dict[str, Any]]) -> None:
    assert failed(content=content) == FAILED


@pytest.mark.parametrize(
    "structured",
    [
        {**ENVELOPE, "more": 1},
        {"code": "SOURCE_TOO_LARGE"},
        {**ENVELOPE, "message": ["m"]},
        [ENVELOPE],
        AS_TEXT,
        True,
    ],
)
def test_structured_content_that_is_not_exactly_that_object_is_not_told(structured: object) -> None:
    assert failed(content=[], structuredContent=structured) == FAILED
    assert failed(content=[text(AS_TEXT)], structuredContent=structured) == FAILED


def test_text_and_structured_content_that_disagree_are_not_told() -> None:
    other = {**ENVELOPE, "message": "Another one."}
    assert failed(content=[text(AS_TEXT)], structuredContent=other) == FAILED


def test_a_result_with_anything_beside_it_is_not_told() -> None:
    assert failed(content=[text(AS_TEXT)], _meta={}) == FAILED


@pytest.mark.parametrize("more", [0, 1])
def test_the_envelope_may_be_as_large_as_its_limit_and_no_larger(more: int) -> None:
    padded = AS_TEXT[:-1] + " " * (MAX_ENVELOPE_BYTES - len(AS_TEXT) + more) + "}"
    assert failed(content=[text(padded)]) == (FAILED if more else SOURCE_TOO_LARGE)


@pytest.mark.parametrize(
    ("message", "expected"),
    [("", False), ("x", True), ("x" * 200, True), ("x" * 201, False), ("🙂" * 200, True), ("🙂" * 201, False)],
)
def test_the_message_has_one_to_two_hundred_code_points(message: str, expected: bool) -> None:  # noqa: FBT001
    assert told(message) is expected


@pytest.mark.parametrize(
    "message",
    [
        "Ask for less: at most 1024 bytes.",
        "Größe 3.5 MB, Limit 1.0 MB; ratio 3:1",
        "Too large. Ask for less.",
        "¡Demasiado grande!",
    ],
)
def test_plain_messages_are_told(message: str) -> None:
    assert told(message)


@pytest.mark.parametrize(
    "message",
    [
        "line\nbreak",
        "tab\there",
        "nul\0",
        "escape \x1b[31m",
        "next line \u0085",
        "line separator \u2028",
        "zero\u200bwidth",
        "right to left \u202e",
        "soft\u00adhyphen",
        "private \ue000",
        "etc/passwd",
        "C\\Windows",
        "look-alike \uff0fetc",
        "look-alike \uff3cetc",
        "see https:x",
        "javascript:alert",
        "mailto:a",
        "ask example.com for it",
        "EXAMPLE.ORG",
        "ex\u00e4mple.de",
        "example\uff0ecom",
        "example\u3002com",
        "secret.txt",
        "at 127.0.0.1",
    ],
)
def test_messages_that_hide_something_or_name_a_place_are_not_told(message: str) -> None:
    assert not told(message)
