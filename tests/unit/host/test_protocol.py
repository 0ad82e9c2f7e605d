"""Frames: what goes out, and what of a host is taken for a frame."""

from __future__ import annotations

import json

import pytest

from pi_session_mcp.host.protocol import (
    MAX_FRAME_BYTES,
    Activity,
    Call,
    Cancel,
    Done,
    Failed,
    Image,
    Ping,
    Prompt,
    Run,
    Settled,
    Succeeded,
    decode_host_frame,
    encode_done,
    encode_request,
)


def test_a_request_is_one_line_with_its_id() -> None:
    line = encode_request(7, Prompt(session=1, turn=2, text="a\nb\u2028c"))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"id": 7, "op": "prompt", "session": 1, "turn": 2, "text": "a\nb\u2028c"}


def test_a_request_as_long_as_a_frame_may_be_is_sent_and_one_byte_more_is_not() -> None:
    room = MAX_FRAME_BYTES - len(encode_request(1, Prompt(session=1, turn=1, text="")))
    assert len(encode_request(1, Prompt(session=1, turn=1, text="x" * room))) == MAX_FRAME_BYTES
    with pytest.raises(ValueError, match="too large"):
        encode_request(1, Prompt(session=1, turn=1, text="x" * (room + 1)))


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ({"re": 1, "ok": True, "result": {}}, Succeeded(re=1, ok=True, result={})),
        ({"re": 1, "ok": False, "code": "failed"}, Failed(re=1, ok=False, code="failed")),
        ({"event": "activity", "session": 1, "turn": 2}, Activity(event="activity", session=1, turn=2)),
        (
            {"call": 3, "session": 1, "tool": "t", "arguments": '{"a":"\\ud800"}', "given": ""},
            Call(call=3, session=1, tool="t", arguments='{"a":"\\ud800"}', given=""),
        ),
        ({"cancel": 3, "session": 1}, Cancel(cancel=3, session=1)),
        ({"event": "run", "session": 1, "active": True}, Run(event="run", session=1, active=True)),
        (
            {"event": "settled", "session": 1, "turn": 2, "stopReason": None, "aborted": False, "text": ""},
            Settled(event="settled", session=1, turn=2, stopReason=None, aborted=False, text=""),
        ),
    ],
)
def test_a_frame_is_read(line: dict[str, object], frame: object) -> None:
    assert decode_host_frame(json.dumps(line).encode()) == frame


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"re":1}',
        b'{"re":"1","ok":true,"result":{}}',
        b'{"re":1,"ok":1,"result":{}}',
        b'{"re":1,"ok":true,"result":[]}',
        b'{"re":1,"ok":true,"result":{},"more":1}',
        b'{"re":1,"ok":false,"code":"a text of somebody else"}',
        b'{"event":"unknown","session":1}',
        b'{"call":1,"session":1,"tool":"t","arguments":{},"given":"{}"}',
        b'{"call":1,"session":1,"tool":"t","arguments":"{}"}',
        b'{"call":"1","session":1,"tool":"t","arguments":"{}","given":"{}"}',
        b'{"call":1,"session":1,"tool":"\\ud800","arguments":"{}","given":"{}"}',
        b'{"cancel":1}',
        b'{"cancel":1,"session":1,"call":1}',
        b'{"event":["activity"],"session":1,"turn":1}',
        b'{"event":"activity","session":1.0,"turn":1}',
        b'{"event":"activity","session":true,"turn":1}',
        b'{"event":"settled","session":1,"turn":1,"stopReason":"stop","aborted":false,"text":"\\ud800"}',
        b'{"event":"activity","session":1,"turn":1}{}',
        b'{"event":"activity","session":NaN,"turn":1}',
        b"\xff",
    ],
)
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_host_frame(line)


def test_requests_carry_nothing_but_their_fields() -> None:
    assert encode_request(1, Ping()) == b'{"id":1,"op":"ping"}\n'


def test_the_end_of_a_call_is_one_line() -> None:
    line = encode_done(Done(done=3, failed=False, texts=["a\nb\u2028"], details={"a": [None, "é"]}))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"done": 3, "failed": False, "texts": ["a\nb\u2028"], "details": {"a": [None, "é"]}}
    image = Image(at=0, data="AAAA", mimeType="image/png")
    shown = json.loads(encode_done(Done(done=3, failed=False, texts=["a note"], images=[image])))
    assert shown["images"] == [{"at": 0, "data": "AAAA", "mimeType": "image/png"}]
