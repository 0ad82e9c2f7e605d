"""What a server writes becomes messages; the rest is dropped, in linear time."""

from __future__ import annotations

import json

import pytest
from mcp_types import JSONRPCNotification, JSONRPCResponse

from pi_session_mcp.bridge.frames import MAX_FRAME_BYTES, LineSplitter, read_message


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_they_arrive(size: int) -> None:
    text = b"one\n\ntwo\r\n" + "drei\u2028\u0085".encode() + b"\nrest"
    splitter = LineSplitter()

    lines = [line for start in range(0, len(text), size) for line in splitter.feed(text[start : start + size])]

    assert lines == [b"one", b"", b"two\r", "drei\u2028\u0085".encode()]
    assert splitter.too_long == 0


@pytest.mark.parametrize(("size", "kept"), [(MAX_FRAME_BYTES, True), (MAX_FRAME_BYTES + 1, False)])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(size: int, kept: bool) -> None:  # noqa: FBT001
    splitter = LineSplitter()
    line = b"x" * size

    lines = [done for start in range(0, size, 65_536) for done in splitter.feed(line[start : start + 65_536])]
    lines += splitter.feed(b"\nnext\n")

    assert lines == ([line, b"next"] if kept else [b"next"])
    assert splitter.too_long == (0 if kept else 1)


def test_a_line_that_is_too_long_is_not_kept_while_it_arrives() -> None:
    splitter = LineSplitter()
    for _ in range(200):
        assert splitter.feed(b"x" * 65_536) == []
    assert splitter.too_long == 1
    assert splitter._pieces == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\r",
        b"no json",
        b'{"jsonrpc":"2.0","method":"m","params":{"x":"\xff"}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"x":"\\ud800"}}',
        b'{"jsonrpc":"2.0"}',
        b"[]",
        b"7",
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_dropped(line: bytes) -> None:
    assert read_message(line) is None


def test_a_message_is_read() -> None:
    assert read_message(b'{"jsonrpc":"2.0","method":"m"}\r') == JSONRPCNotification(jsonrpc="2.0", method="m")
    answer = read_message(b'{"jsonrpc":"2.0","id":1,"result":{"a":{"b":"\\u0000"}}}')
    assert answer == JSONRPCResponse(jsonrpc="2.0", id=1, result={"a": {"b": "\0"}})


def answer(result: str) -> JSONRPCResponse:
    message = read_message(b'{"jsonrpc":"2.0","id":1,"result":%s}' % result.encode())
    assert isinstance(message, JSONRPCResponse)
    return message


@pytest.mark.parametrize(
    "repeated",
    [
        '{"code": "a", "code": "SOURCE_TOO_LARGE", "message": "m"}',
        '{"code": "a", "c\\u006fde": "SOURCE_TOO_LARGE", "message": "m"}',
        '{"code": "SOURCE_TOO_LARGE", "message": {"x": [{"y": 1, "\\u0079": 2}]}}',
    ],
)
def test_an_error_result_that_says_a_key_twice_is_a_bare_error(repeated: str) -> None:
    said = answer(f'{{"content": [], "isError": true, "structuredContent": {repeated}}}')
    assert said.result == {"content": [], "isError": True}


def test_other_results_are_left_as_they_are() -> None:
    error = {"content": [{"type": "text", "text": '{"a":1,"a":2}'}], "isError": True, "structuredContent": {"n": 1}}
    assert answer(json.dumps(error)).result == error
    assert answer('{"content": [], "structuredContent": {"a": 1, "a": 2}}').result["structuredContent"] == {"a": 2}


@pytest.mark.parametrize("digits", [4300, 4301, 100_000])
def test_a_number_of_absurd_length_in_an_error_is_no_defect(digits: int) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true,"structuredContent":%s}}' % (b"9" * digits)
    read_message(line)
