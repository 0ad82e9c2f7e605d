"""Turns what an external MCP server writes into messages: bounded lines that are JSON-RPC. Pure.

The time is linear in what arrives, in whatever chunks. A line that is no message is dropped. An answer is never
dropped, because its call would wait in vain. It is repaired if it has half of a surrogate pair, bytes that are no
UTF-8, or no `jsonrpc`. If it cannot be repaired (a number that is not finite or too long, nesting that is too deep), it
becomes an error answer. If its id cannot be read either, it is an answer without an id, and every call that waits is
told.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from pydantic_core import from_json

MAX_FRAME_BYTES: Final = 4 * 1024 * 1024
"""The longest line, without its end."""
MAX_REPAIRED_BYTES: Final = 512 * 1024
"""The longest line that is repaired: that takes time, and longer results are too large anyway."""
MAX_DEPTH: Final = 150
"""The deepest nesting in a line that is repaired. A line that needs no repair may be a little deeper."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
UNREADABLE: Final = -32700
"""The code of an error answer that is made here: the parse error of JSON-RPC."""


def read_messages(line: bytes) -> list[JSONRPCMessage]:
    """The messages of one line: one, those of a batch, or none. See `read_message`."""
    if not line.lstrip().startswith(b"["):
        return [] if (message := read_message(line)) is None else [message]
    try:
        batch = from_json(line, allow_inf_nan=False)
    except ValueError:
        return _repaired_batch(line)
    read = [_message(one, line) for one in batch if isinstance(one, dict)]
    return [message for message in read if message is not None]


def read_message(line: bytes) -> JSONRPCMessage | None:
    """The message of one line. `None` for a line that is no message, and for a request that cannot be read."""
    line = line.removeprefix(_BYTE_ORDER_MARK).strip()
    if not line.startswith(b"{"):
        return None
    try:
        message = from_json(line, allow_inf_nan=False)
    except ValueError:
        return _repaired(line)
    return _message(message, line)


def _message(message: dict[str, Any], line: bytes) -> JSONRPCMessage | None:
    method, number = message.get("method"), message.get("id")
    if isinstance(method, str):
        return _asked(method, number, message)
    if "result" not in message and "error" not in message:
        return None if number is None else _failed(_read_id(number))
    result = message.get("result")
    if "error" in message or not isinstance(result, dict) or (read := _read_id(number)) is None:
        return _failed(_read_id(number))
    return _without_ambiguous_error(JSONRPCResponse(jsonrpc="2.0", id=read, result=result), line)


def _asked(method: str, number: object, message: dict[str, Any]) -> JSONRPCMessage | None:
    """A request or a notification. Its parameters are not read, since they are of no use to us."""
    if "id" not in message:
        params = message.get("params")
        return JSONRPCNotification(jsonrpc="2.0", method=method, params=params if isinstance(params, dict) else None)
    return None if (read := _read_id(number)) is None else JSONRPCRequest(jsonrpc="2.0", id=read, method=method)


def _read_id(number: object) -> int | str | None:
    """An id as the number that it was: some languages write 1 as 1.0."""
    match number:
        case bool():
            return None
        case int() | str():
            return number
        case float() if number.is_integer():
            return int(number)
        case _:
            return None


def _failed(number: int | str | None) -> JSONRPCError:
    """An error answer, without the text of the server."""
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=UNREADABLE, message=""))


# --- repairing -------------------------------------------------------------------------------------------------------


def _repaired(line: bytes) -> JSONRPCMessage | None:
    """The repaired answer of a line that is not strict JSON, or an error answer with its id. Requests are dropped."""
    try:
        message = _parsed(line) if len(line) <= MAX_REPAIRED_BYTES else None
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return _failed_by_its_ends(line)
    return None if "method" in message else _message(message, line)


def _repaired_batch(line: bytes) -> list[JSONRPCMessage]:
    """The answers of a batch that is not strict JSON, or in place of them one error answer without an id."""
    try:
        batch = _parsed(line) if len(line) <= MAX_REPAIRED_BYTES else None
    except (ValueError, RecursionError):
        batch = None
    if not isinstance(batch, list):
        return [_failed(None)] if _ANSWER_IN_BATCH.match(line[:_END_BYTES]) else []
    read = [_message(one, line) for one in batch if isinstance(one, dict) and "method" not in one]
    return [message for message in read if message is not None]


def _parsed(line: bytes) -> object:
    """The value of a line, repaired. Raises `ValueError` and `RecursionError` when that is impossible."""
    text = line.decode("utf-8", "replace")
    return _sound(json.loads(text, parse_constant=_refused), MAX_DEPTH)


def _refused(_constant: str) -> object:
    raise ValueError


def _sound(value: object, depth: int) -> object:
    """The value without halves of surrogate pairs. Raises `ValueError` for a number that is not finite, and depth."""
    if depth == 0:
        raise ValueError
    match value:
        case str():
            return _whole(value)
        case list():
            return [_sound(one, depth - 1) for one in value]
        case dict():
            return {_whole(key): _sound(one, depth - 1) for key, one in value.items()}
        case float() if not math.isfinite(value):
            raise ValueError
        case _:
            return value


def _whole(text: str) -> str:
    return text if text.isascii() else _HALF_PAIR.sub("\ufffd", text)


_ID: Final = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"[^"\\]{0,20}"\s*'
_ANSWER: Final = rb'"(?:result|error)"\s*:'
_ID_FIRST: Final = re.compile(
    rb"\{\s*(?:" + _VERSION + rb",\s*)?" + _ID + rb",\s*(?:" + _VERSION + rb",\s*)?" + _ANSWER
)
_ANSWER_FIRST: Final = re.compile(rb"\{\s*(?:" + _VERSION + rb",\s*)?" + _ANSWER)
_ID_LAST: Final = re.compile(rb",\s*" + _ID + rb"(?:,\s*" + _VERSION + rb")?\}\Z")
_ANSWER_IN_BATCH: Final = re.compile(
    rb"\s*\[\s*\{\s*(?:" + _VERSION + rb",\s*)?(?:" + _ID + rb",\s*(?:" + _VERSION + rb",\s*)?)?" + _ANSWER
)
_ENDLESS_ID_FIRST: Final = re.compile(rb"\{\s*(?:" + _VERSION + rb',\s*)?"id"\s*:\s*-?\d{19}')
"""Stands for an id that is longer than any of ours."""
_END_BYTES: Final = 512


def _failed_by_its_ends(line: bytes) -> JSONRPCError | None:
    """An error answer for a line of which only the id can be read, at its beginning or end.

    A line that is certainly an answer, but has no such id, becomes an answer without an id.
    """
    start, end = line[:_END_BYTES], line[-_END_BYTES:]
    found = _ID_FIRST.match(start)
    if found is None and _ANSWER_FIRST.match(start):
        found = _ID_LAST.search(end)
        if found is None:
            return _failed(None)
    if found is None:
        return _failed(None) if _ENDLESS_ID_FIRST.match(start) and b'"method"' not in line else None
    return _failed(_read_id(json.loads(found[1].decode("utf-8", "replace"))))


# --- errors that may be told -----------------------------------------------------------------------------------------


def _without_ambiguous_error(message: JSONRPCResponse, line: bytes) -> JSONRPCMessage:
    """The result, or a bare error if it is an error result that has a key twice.

    The parser has already taken the last of two equal keys. The content of an error result decides which of our texts a
    model gets, so it must not depend on that.
    """
    if message.result.get("isError") is not True or _says_each_key_once(line):
        return message
    return JSONRPCResponse(jsonrpc="2.0", id=message.id, result={"content": [], "isError": True})


def _says_each_key_once(line: bytes) -> bool:
    repeated = False

    def note(members: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in members}) < len(members)

    # Converting a long number would take long.
    json.loads(line.strip().decode("utf-8", "replace"), object_pairs_hook=note, parse_int=len)
    return not repeated
