"""From bytes to JSON-RPC messages and back. Pure; standard library only.

A line of the client is a value, never the end of the stream: what is no message becomes a `Refused` that carries its
own answer. What could not be sent on faithfully (a lone surrogate, a number without a JSON form) is refused here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 128
"""Of nested arrays and objects. No tool needs ten; parsers of the next layer end somewhere above a hundred."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603

MessageId: TypeAlias = int | str
Params: TypeAlias = dict[str, Any] | None


class Request(NamedTuple):
    """A message that wants an answer. `size` is that of its line, in bytes."""

    id: MessageId
    method: str
    params: Params
    size: int = 0


class Notification(NamedTuple):
    """A message that wants none."""

    method: str
    params: Params
    size: int = 0


class Reply(NamedTuple):
    """An answer to a request of ours. We send none, so it is of no use."""


class Refused(NamedTuple):
    """A line that is no message. `reason` is a word for diagnostics."""

    reason: str
    code: int
    text: str
    id: MessageId | None = None

    def answer(self) -> bytes:
        """The error frame that tells the client so."""
        return error_frame(self.id, self.code, self.text)


Message: TypeAlias = Request | Notification | Reply
Line: TypeAlias = bytes | None
"""A line without its end; `None` stands for one that was longer than allowed."""

TOO_LARGE: Final = Refused("too_large", INVALID_REQUEST, "Message too large")
_NOT_JSON: Final = Refused("parse", PARSE_ERROR, "Parse error")


class LineSplitter:
    """Cuts what arrives into lines at `\\n`, and only there. Holds at most `max_bytes` and one chunk.

    A line of more than `max_bytes` is reported as `None` as soon as that is known; the rest of it is dropped.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """The lines that this chunk completes. Consume all of them before the next call."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield from self._take(chunk[start:end])
            yield from self._close()
            start = end + 1
        yield from self._take(chunk[start:])

    def end(self) -> Iterator[Line]:
        """The last line, if the input ended without a line end."""
        yield from self._close()

    def _take(self, part: bytes) -> Iterator[Line]:
        if self._dropping or not part:
            return
        self._held += len(part)
        if self._held > self._max_bytes:
            self._parts.clear()
            self._dropping = True
            yield None
            return
        self._parts.append(part)

    def _close(self) -> Iterator[Line]:
        line, dropped = b"".join(self._parts), self._dropping
        self._parts.clear()
        self._held, self._dropping = 0, False
        if not dropped and not line.isspace() and line:
            yield line


def read(line: Line) -> Message | Refused:
    """What a line says."""
    if line is None:
        return TOO_LARGE
    try:
        value = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):  # bad UTF-8 and bad JSON are both ValueErrors
        return _NOT_JSON
    if _too_deep(line, value) or _has_lone_surrogate(line, value):
        return _NOT_JSON
    return _classify(value, len(line))


def encode(message: dict[str, Any]) -> bytes:
    """A frame, line end included. Lone surrogates become U+FFFD, which is what UTF-8 can carry.

    Raises `TypeError`, `ValueError` or `RecursionError` for what JSON cannot say.
    """
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Through UTF-16, so that two halves that belong together become their character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode() + b"\n"


def error_frame(message_id: MessageId | None, code: int, text: str) -> bytes:
    """An error answer."""
    return encode({"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}})


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: `true` is not 1, and the order of members does not matter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def slot(message_id: MessageId) -> MessageId:
    """The name under which a request in flight is found, the same for 7 and `"7"`.

    The MCP SDK cancels by such a name, so two requests that share one must not be in flight together.
    """
    if isinstance(message_id, str):
        try:
            return int(message_id)
        except ValueError:
            return message_id
    return message_id


def _classify(value: object, size: int) -> Message | Refused:
    if not isinstance(value, dict):
        return _invalid(None)
    message_id, usable = value.get("id"), _is_id(value.get("id"))
    if value.get("jsonrpc") != "2.0":
        return _invalid(message_id if usable else None)
    if "method" not in value and ("result" in value or "error" in value):
        return Reply()
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or not (params is None or isinstance(params, dict)):
        return _invalid(message_id if usable else None)
    if "id" not in value:
        return Notification(method, params, size)
    if not usable:
        return _invalid(None)
    return Request(value["id"], method, params, size)


def _invalid(message_id: MessageId | None) -> Refused:
    return Refused("invalid_request", INVALID_REQUEST, "Invalid Request", message_id)


def _is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _refuse_constant(_name: str) -> float:
    raise ValueError


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    return number


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def _has_lone_surrogate(line: bytes, value: object) -> bool:
    if not _SURROGATE_ESCAPE.search(line):
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _too_deep(line: bytes, value: object) -> bool:
    """Brackets inside strings count for the cheap question, not for the exact one."""
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _containers(outer)]
        if not level:
            return False
    return True


def _containers(value: Any) -> list[Any]:
    """The arrays and objects directly inside this one."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [inner for inner in values if isinstance(inner, dict | list)]
