"""What a server writes becomes messages; the rest is dropped, in linear time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCResponse

from pi_session_mcp.bridge.frames import (
    MAX_DEPTH,
    MAX_REPAIRED_BYTES,
    UNREADABLE,
    read_message,
    read_messages,
)


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
        b'{"jsonrpc":"2.0","method":"m","id":null}',
        b'{"jsonrpc":"2.0","method":"m","id":[1]}',
        b'{"jsonrpc":"2.0","method":"m","params":' + b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_dropped(line: bytes) -> None:
    assert read_message(line) is None


DEEP = b"[" * 300 + b"]" * 300


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000, 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{"n":%s}}' % DEEP, 1),
        (b'{"id": 1, "jsonrpc" : "2.0", "result":{"n":%s}}' % DEEP, 1),
        (b'{"result":{"n":%s},"id":1}' % DEEP, 1),
        (b' {"jsonrpc":"2.0","result":{"n":%s} , "id" : "a b", "jsonrpc":"2.0"}\r' % DEEP, "a b"),
        (b'{"jsonrpc":"2.0","error":{"data":%s},"id":1}' % DEEP, 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{"n":%s}}' % (b"9" * 5000), 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{"n":NaN}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800","n":1e400}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","id":2,"result":{}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff%s"}}' % (b"x" * MAX_REPAIRED_BYTES), 1),
        (b'{"jsonrpc":"2.0","id":1}', 1),
        (b'{"jsonrpc":"2.0","id":1,"result":null}', 1),
        (b'{"jsonrpc":"2.0","id":1,"result":[]}', 1),
        (b'{"jsonrpc":"2.0","id":1,"error":null}', 1),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":"x"},"result":{}}', 1),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}', None),
        (b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse"}}', None),
        (b'{"jsonrpc":"2.0","id":true,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":%s,"result":{}}' % (b"9" * 5000), None),
        (b'{"id": -%s, "result":{}}' % (b"9" * 5000), None),
        (b'{"result":{},"id":%s}' % (b"9" * 5000), None),
        (b'{"result":{"n":NaN},"_meta":{"id":1}}', None),
    ],
)
def test_an_answer_that_cannot_be_taken_is_an_error_at_once(line: bytes, number: int | str | None) -> None:
    assert read_message(line) == JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=UNREADABLE, message=""))


@pytest.mark.parametrize(
    ("line", "number", "result"),
    [
        (b'{"id":1,"result":{"a":1}}', 1, {"a": 1}),
        (b'{"jsonrpc":"1.0","id":1,"result":{"a":1}}', 1, {"a": 1}),
        (b'{"jsonrpc":"2.0","id":1.0,"result":{"a":1}}', 1, {"a": 1}),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{"a":1}}', 1, {"a": 1}),
        (
            b'{"jsonrpc":"2.0","id":1,"result":{"\\udc00":"\\ud800x \\ud83d\\ude42"}}',
            1,
            {"\ufffd": "\ufffdx \U0001f642"},
        ),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\\\ud800 \\ud800"}}', 1, {"a": "\\ud800 \ufffd"}),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":["\xff\xc3"]}}', 1, {"a": ["\ufffd\ufffd"]}),
    ],
)
def test_an_answer_that_can_be_repaired_is(line: bytes, number: int, result: dict[str, Any]) -> None:
    assert read_message(line) == JSONRPCResponse(jsonrpc="2.0", id=number, result=result)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 3, MAX_DEPTH - 2])
def test_what_is_repaired_may_be_nested_as_deep_as_the_limit_and_no_deeper(depth: int) -> None:
    nested = b"[" * depth + b'"\xff"' + b"]" * depth
    message = read_message(b'{"jsonrpc":"2.0","id":1,"result":{"n":%s}}' % nested)
    assert isinstance(message, JSONRPCResponse if depth + 3 <= MAX_DEPTH else JSONRPCError)


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_repaired_may_be_as_long_as_the_limit_and_no_longer(more: int) -> None:
    before, after = b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff', b'"}}'
    line = before + b"x" * (MAX_REPAIRED_BYTES - len(before) - len(after) + more) + after
    assert isinstance(read_message(line), JSONRPCError if more else JSONRPCResponse)


def test_a_batch_is_the_messages_in_it() -> None:
    batch = b'[{"id":1,"result":{}},7,{"method":"m"},{"id":2},[]]'
    assert [type(one) for one in read_messages(batch)] == [JSONRPCResponse, JSONRPCNotification, JSONRPCError]
    assert read_messages(b"[") == read_messages(b"[]") == read_messages(b"no json") == []
    assert len(read_messages(b'{"id":1,"result":{}}')) == 1


def test_a_batch_that_needs_repair_is_the_answers_in_it() -> None:
    (first, second) = read_messages(b'[{"id":1,"result":{"a":"\\ud800"}},{"id":3,"method":"m"},7,{"id":2}]')
    assert first == JSONRPCResponse(jsonrpc="2.0", id=1, result={"a": "\ufffd"})
    assert isinstance(second, JSONRPCError)


@pytest.mark.parametrize(
    "line",
    [
        b'[{"jsonrpc":"2.0","id":1,"result":{"n":NaN}}]',
        b' [ {"id":1,"result":{"n":%s}}]' % DEEP,
        b'[{"error":NaN,"id":1}]',
        b'[{"id":1,"result":{"a":"\xff%s"}}]' % (b"x" * MAX_REPAIRED_BYTES),
    ],
)
def test_a_batch_that_cannot_be_repaired_is_an_error_to_nobody(line: bytes) -> None:
    assert read_messages(line) == [JSONRPCError(jsonrpc="2.0", error=ErrorData(code=UNREADABLE, message=""), id=None)]


@pytest.mark.parametrize(
    "line",
    [b'[INFO] {"id":1,"result":NaN}', b'[{"method":"m","params":NaN}]', b'{"id":%s,"method":"m"}' % (b"9" * 5000)],
)
def test_words_that_only_look_like_an_answer_are_dropped(line: bytes) -> None:
    assert read_messages(line) == []


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
