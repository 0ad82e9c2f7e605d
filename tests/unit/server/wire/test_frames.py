"""Lines, and what they say."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.server.wire import frames
from pi_session_mcp.server.wire.frames import (
    INVALID_REQUEST,
    MAX_LINE_BYTES,
    PARSE_ERROR,
    TOO_LARGE,
    Line,
    LineSplitter,
    Notification,
    Refused,
    Reply,
    Request,
    Verbatim,
    read,
)
from pi_session_mcp.server.wire.outline import MAX_OUTLINE_BYTES
from pi_session_mcp.server.wire.plain_json import MAX_DEPTH, MAX_DIGITS

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def lines_of(*chunks: bytes, max_bytes: int = MAX_LINE_BYTES) -> list[Line]:
    splitter = LineSplitter(max_bytes)
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    return found + list(splitter.end())


# --- splitting --------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=6).filter(lambda line: b"\n" not in line), max_size=8), st.lists(st.integers(0, 60)))
def test_where_chunks_end_does_not_matter(lines: list[bytes], cuts: list[int]) -> None:
    text = b"\n".join(lines)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[start:end] for start, end in pairwise(places)]

    assert lines_of(*chunks) == [line for line in lines if line.strip()]


def test_only_a_newline_ends_a_line() -> None:
    text = "a\rb\x0bc\x0cd\x85e\u2028f\x00g".encode()

    assert lines_of(text + b"\n") == [text]


def test_empty_and_blank_lines_are_nothing() -> None:
    assert lines_of(b"\n\r\n  \t\n" + PING + b"\n\n") == [PING]


def test_a_last_line_without_an_end_is_a_line() -> None:
    assert lines_of(b"a\nb") == [b"a", b"b"]


def test_a_line_of_exactly_the_bound_passes() -> None:
    assert lines_of(b"x" * 10 + b"\n", max_bytes=10) == [b"x" * 10]


def test_a_line_of_one_byte_more_is_reported_once_and_the_next_one_passes() -> None:
    assert lines_of(b"x" * 11, b"x" * 50, b"x\nnext\n", max_bytes=10) == [None, b"next"]


def test_a_line_that_is_too_long_is_reported_before_it_ends() -> None:
    splitter = LineSplitter(10)

    assert list(splitter.feed(b"x" * 11)) == [None]


@pytest.mark.parametrize("endless", [b"x", b'{"a":"', b"[", b'{"a":[', b'{"a":{"b":"', b"{   ", b'"', b"1", b'{"id":1'])
def test_an_endless_line_is_not_kept(endless: bytes) -> None:
    splitter = LineSplitter(10)
    list(splitter.feed(endless))
    for _ in range(1000):
        list(splitter.feed(endless[-1:] * 100))

    assert splitter._held <= 110
    assert not splitter._parts
    assert splitter._outline is None or len(splitter._outline.json()) <= MAX_OUTLINE_BYTES


LONG: Final = b"x" * 9000 + b'\\"[{' * 500
OWNERS: Final[list[tuple[bytes, object]]] = [
    (b'{"id":7,"p":"%b"}' % LONG, 7),
    (b'{"p":{"id":8,"q":["%b"],"r":{}},"jsonrpc":"2.0","id":7}' % LONG, 7),
    (b' \t{ "p" : [[{"id":8}],"%b"] , "id" : "a\\"b" } \r' % LONG, 'a"b'),
    (b'{"p":[%b],"id":1234567,"s":[]}' % (b"[1,2]," * 3000 + b"[]"), 1234567),
    (b'{"id":1,"p":"%b","id":2}' % LONG, 2),
    (b'{"p":"%b","id":"\\ud800"}' % LONG, Verbatim(r'"\ud800"')),
    (b'{"p":"%b","id":%b}' % (LONG, b"9" * 5000), Verbatim("9" * 5000)),
    (b'{"p":"%b","\\u0069d":7}' % LONG, 7),
    (b'{"p":"%b","id":"%b"}' % (LONG, b"i" * 4000), "i" * 4000),
]


@pytest.mark.parametrize(("line", "owner"), OWNERS)
@pytest.mark.parametrize("chunk", [1, 7, 64 * 1024])
def test_a_line_that_is_too_long_is_refused_under_its_id_wherever_it_stands(
    line: bytes, owner: object, chunk: int
) -> None:
    pieces = [line[at : at + chunk] for at in range(0, len(line), chunk)]

    assert lines_of(*pieces, b"\nnext", max_bytes=100) == [TOO_LARGE._replace(id=owner), b"next"]  # type: ignore[arg-type]


JSON_VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=30,
)


@given(st.dictionaries(st.text(max_size=3) | st.just("id"), JSON_VALUES, min_size=1), st.integers(1, 40), st.booleans())
def test_the_id_of_a_line_that_is_too_long_is_the_one_that_json_says(
    message: dict[str, Any],
    chunk: int,
    ascii_only: bool,  # noqa: FBT001 - it is drawn
) -> None:
    line = json.dumps({**message, "id": 7}, ensure_ascii=ascii_only).encode()
    pieces = [line[at : at + chunk] for at in range(0, len(line), chunk)]

    assert lines_of(*pieces, b"\n", max_bytes=1) == [TOO_LARGE._replace(id=7)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"p":"%b"}' % LONG,
        b'{"p":"%b","id":null}' % LONG,
        b'{"p":"%b","id":1.5}' % LONG,
        b'{"p":"%b","id":true}' % LONG,
        b'{"p":"%b","id":"%b"}' % (LONG, LONG),
        b'{"p":"%b","id":7' % LONG,
        b'{"id":7,"p":["%b"}' % LONG,
        b'{"id":7,"p":"%b"}}' % LONG,
        b'{"id":7,"p":"%b"}{}' % LONG,
        b'{"id":7,"p":"%b"} x' % LONG,
        b'[{"id":7,"p":"%b"}]' % LONG,
        b'"%b"' % LONG,
        b"\xff" * 9000,
        b'{"id":7,"\xff":"%b"}' % LONG,
        b'{"id":7,%b"q":1}' % b"".join(b'"k%d":1,' % number for number in range(20_000)),
    ],
    ids=lambda line: line[-12:].decode("latin-1"),
)
def test_a_line_that_is_too_long_without_a_readable_id_is_refused_once(line: bytes) -> None:
    found = lines_of(line + b"\nnext", max_bytes=100)

    assert [read(each) for each in found[:-1]] == [TOO_LARGE]
    assert found[-1] == b"next"


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"",
        PING[:-1],
        PING + PING,
        PING + b"\x00",
        b"\xef\xbb\xbf" + PING,
        PING.decode().encode("utf-16"),
        b'{"jsonrpc":"2.0","id":1,"method":"p\xffing"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
        b'{"jsonrpc":"2.0","id":1,"method":"a\x00b"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":-Infinity}}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 200 + b"]" * 199 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 200 + b"}" * 200 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 200 + b"]" * 203 + b"}}",
    ],
)
def test_what_is_not_json_is_a_parse_error(line: bytes) -> None:
    assert read(line) == Refused("parse", PARSE_ERROR, "Parse error")


@pytest.mark.parametrize(
    "line", [b"[]", b"[" * 200_000 + b"]" * 200_000, b"[" + PING + b"]", b"1", b'"ping"', b"null", b"true", b"{}"]
)
def test_what_is_no_object_or_an_empty_one_is_an_invalid_request_of_nobody(line: bytes) -> None:
    assert read(line) == Refused("invalid_request", INVALID_REQUEST, "Invalid Request", None)


@pytest.mark.parametrize(
    "fault",
    [
        {"jsonrpc": None},
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"params": []},
        {"params": "text"},
        {"params": 1},
        {"method": 1},
        {"method": None},
        {"method": ["ping"]},
    ],
)
@pytest.mark.parametrize("message_id", [0, -1, 7, "7", "", 2**70])
def test_an_invalid_request_is_answered_under_its_id(fault: dict[str, Any], message_id: int | str) -> None:
    message = {"jsonrpc": "2.0", "id": message_id, "method": "ping", **fault}
    if message["jsonrpc"] is None:
        del message["jsonrpc"]

    assert read(json.dumps(message).encode()) == Refused(
        "invalid_request", INVALID_REQUEST, "Invalid Request", message_id
    )


@pytest.mark.parametrize("message_id", [None, 1.5, 1.0, True, False, {}, []])
def test_an_id_that_is_no_id_makes_an_invalid_request_of_nobody(message_id: object) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": message_id, "method": "ping"}).encode()

    assert read(line) == Refused("invalid_request", INVALID_REQUEST, "Invalid Request", None)


def test_a_method_without_an_id_is_a_notification() -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

    assert read(line) == Notification("notifications/initialized", None, len(line))


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":null,"error":{}}',
    ],
)
def test_an_answer_to_a_request_that_we_never_made_is_of_no_use(line: bytes) -> None:
    assert read(line) == Reply()


@pytest.mark.parametrize(
    "text",
    [
        PING.decode() + "\r",
        "   " + PING.decode(),
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"s":"\\u0000\u2028\u0085\\ud83d\\ude00"}}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"s":"\\\\ud800"}}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1e308}}',
    ],
)
def test_what_is_unusual_and_right_is_read(text: str) -> None:
    message = read(text.encode())

    assert isinstance(message, Request)
    assert (message.id, message.method) == (1, "ping")


def nested(depth: int) -> bytes:
    """A message whose `params` make it `depth` deep, counting itself."""
    inner = depth - 2
    return b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"deep":' + b"[" * inner + b"]" * inner + b"}}"


def test_nesting_is_read_up_to_the_bound_and_what_is_deeper_is_null() -> None:
    def innermost(depth: int) -> object:
        message = read(nested(depth))
        assert isinstance(message, Request)
        assert message.params is not None
        value = message.params["deep"]
        while isinstance(value, list) and value:
            (value,) = value
        return value

    assert [innermost(depth) for depth in (MAX_DEPTH, MAX_DEPTH + 1, 200_000)] == [[], None, None]


def test_beside_what_is_too_deep_everything_is_read() -> None:
    deep = b'{"k":"[{\\"]","v":' * 200 + b'"x"' + b"}" * 200
    line = b'{"first":%b,"jsonrpc":"2.0","params":{"a":%b,"b":[7,%b]},"method":"ping","id":"x"}' % (deep, deep, deep)
    message = read(line)

    assert isinstance(message, Request)
    assert (message.id, message.method) == ("x", "ping")
    assert message.params is not None
    assert message.params["b"][0] == 7


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (rb"\ud800", "\ufffd"),
        (rb"\uDFFF\uD800", "\ufffd\ufffd"),
        (rb"\ud83d\ude00", "😀"),
        (rb"\ud83d\ud83d\ude00\ude00", "\ufffd😀\ufffd"),
        (rb"\\ud800", r"\ud800"),
        (rb"\\\ud800\\\\udc00", "\\\ufffd\\\\udc00"),
        (rb"\n\ud800\"", '\n\ufffd"'),
    ],
)
def test_half_a_surrogate_pair_is_read_as_a_replacement_character(written: bytes, read_as: str) -> None:
    line = b'{"jsonrpc":"2.0","id":"%b","method":"m%b","params":{"k%b":"%b"}}'
    message = read(line % (b"x", written, written, written))

    assert isinstance(message, Request)
    assert (message.id, message.method, message.params) == ("x", "m" + read_as, {"k" + read_as: read_as})


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (b"1e999", float("inf")),
        (b"-1e400", float("-inf")),
        (b"1E400", float("inf")),
        (b"1e-400", 0.0),
        (b"-0", 0),
        (b"9" * MAX_DIGITS, 10**MAX_DIGITS - 1),
        (b"9" * (MAX_DIGITS + 1), float("inf")),
        (b"-" + b"9" * 5000, float("-inf")),
        (b"9" * 1_000_000, float("inf")),
    ],
)
def test_a_number_of_any_size_is_read(written: bytes, number: float) -> None:
    message = read(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":%b}}' % written)

    assert isinstance(message, Request)
    assert message.params == {"n": number}


@pytest.mark.parametrize(
    "message_id",
    [b"9" * 5000, b"-" + b"9" * 5000, rb'"\ud800"', rb'"a\udfff\ud800b"', b"9" * (MAX_DIGITS + 1)],
    ids=lambda written: written[:12].decode(),
)
def test_an_id_that_only_json_can_say_is_refused_under_itself(message_id: bytes) -> None:
    refused = read(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % message_id)

    assert isinstance(refused, Refused)
    assert refused == Refused("invalid_request", INVALID_REQUEST, "Invalid Request", Verbatim(message_id.decode()))
    assert b'"id":%b,"error":{"code":-32600,' % message_id in refused.answer()
    assert refused.answer().count(b"\n") == 1


def test_brackets_in_a_text_are_no_nesting() -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"text": "[{" * 10_000}}).encode()

    assert isinstance(read(line), Request)


def test_a_line_that_was_too_long_is_refused() -> None:
    assert read(None) == Refused("too_large", INVALID_REQUEST, "Message too large")


@given(st.binary(max_size=200))
def test_whatever_the_bytes_reading_never_raises(line: bytes) -> None:
    read(line)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
def test_whatever_the_json_reading_gives_a_message_or_a_refusal(value: object) -> None:
    assert isinstance(read(json.dumps(value).encode()), Request | Notification | Reply | Refused)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_frame_is_one_line_of_utf8() -> None:
    frame = frames.encode({"text": "ä\n\r\x00\u2028\x85😀"})

    assert frame.count(b"\n") == 1
    assert frame.endswith(b"\n")
    assert json.loads(frame) == {"text": "ä\n\r\x00\u2028\x85😀"}


def test_a_lone_surrogate_becomes_a_replacement_character_and_a_split_pair_its_character() -> None:
    frame = frames.encode({"lone": "a\ud800b\udfff", "pair": "\ud83d\ude00", "\udc00": 1})

    assert json.loads(frame) == {"lone": "a\ufffdb\ufffd", "pair": "😀", "\ufffd": 1}


@given(st.dictionaries(st.text(st.characters()), st.text(st.characters())))
def test_any_text_makes_a_frame(message: dict[str, Any]) -> None:
    assert frames.encode(message).decode("utf-8", "strict").count("\n") == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"bytes"])
def test_what_json_cannot_say_raises(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        frames.encode({"value": value})


def test_a_refusal_is_its_own_answer() -> None:
    answer = json.loads(Refused("parse", PARSE_ERROR, "Parse error").answer())

    assert answer == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}


@pytest.mark.parametrize(("one", "other"), [(7, "7"), (7, " 7 "), ("07", "7"), (-1, "-1")])
def test_ids_that_the_sdk_confuses_share_a_slot(one: int | str, other: int | str) -> None:
    assert frames.slot(one) == frames.slot(other)


def test_other_ids_do_not_share_a_slot() -> None:
    assert len({frames.slot(each) for each in (7, 8, "a", "", "7.0", "1" * 5000)}) == 6
