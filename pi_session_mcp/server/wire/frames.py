"""From bytes to JSON-RPC messages and back. Pure; standard library only.

A line of the client is a value, never the end of the stream: what is no message becomes a `Refused` that carries its
own answer, under the message's id if that can be read. Every other valid message is passed on, whatever is in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pi_session_mcp.server.wire import plain_json
from pi_session_mcp.server.wire.outline import Outline

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE_BYTES: Final = 4 * 1024 * 1024

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603

MessageId: TypeAlias = int | str


class Verbatim(NamedTuple):
    """An id that only its JSON text can say: half a surrogate pair, or thousands of digits."""

    json: str


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
    id: MessageId | Verbatim | None = None

    def answer(self) -> bytes:
        """The error frame that tells the client so."""
        return error_frame(self.id, self.code, self.text)


Message: TypeAlias = Request | Notification | Reply
Line: TypeAlias = bytes | Refused | None
"""A line without its end. One that was longer than allowed is `None`, or a refusal if its id could be read."""

TOO_LARGE: Final = Refused("too_large", INVALID_REQUEST, "Message too large")
_NOT_JSON: Final = Refused("parse", PARSE_ERROR, "Parse error")


class LineSplitter:
    """Cuts what arrives into lines at `\\n`, and only there. Holds at most `max_bytes` and one chunk.

    A line of more than `max_bytes` is not kept. It is reported when it ends, or once no id can be in it.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._outline: Outline | None = None
        """Of a line that is too long."""
        self._dropping = False
        """A line that is too long, and was reported."""

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
        if self._outline is not None:
            yield from self._follow(self._outline, part)
            return
        self._held += len(part)
        self._parts.append(part)
        if self._held > self._max_bytes:
            self._outline = Outline()
            yield from self._follow(self._outline, b"".join(self._parts))
            self._parts.clear()

    def _follow(self, outline: Outline, part: bytes) -> Iterator[Line]:
        outline.feed(part)
        if outline.hopeless:
            self._outline, self._dropping = None, True
            yield None

    def _close(self) -> Iterator[Line]:
        line, outline, dropped = b"".join(self._parts), self._outline, self._dropping
        self._parts.clear()
        self._held, self._outline, self._dropping = 0, None, False
        if outline is not None:
            yield TOO_LARGE._replace(id=_outlined_id(outline))
        elif not dropped and not line.isspace() and line:
            yield line


def read(line: Line) -> Message | Refused:
    """What a line says."""
    if line is None:
        return TOO_LARGE
    if isinstance(line, Refused):
        return line
    try:
        said = plain_json.read(line.decode("utf-8"))
    except (ValueError, RecursionError):  # bad UTF-8 and bad JSON are both ValueErrors
        return _NOT_JSON
    return _classify(said, len(line))


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


def error_frame(message_id: MessageId | Verbatim | None, code: int, text: str) -> bytes:
    """An error answer."""
    if isinstance(message_id, Verbatim):
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (
            message_id.json.encode(),
            encode({"code": code, "message": text}).rstrip(),
        )
    return encode({"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}})


def slot(message_id: MessageId) -> MessageId:
    """The name under which a request in flight is found, the same for 7 and `"7"`.

    Clients cancel by either form, so two requests that share a name must not be in flight together.
    """
    if isinstance(message_id, str):
        try:
            return int(message_id)
        except ValueError:
            return message_id
    return message_id


def _classify(said: plain_json.Read, size: int) -> Message | Refused:
    value = said.plain
    if not isinstance(value, dict):
        return _invalid(None)
    message_id = _readable_id(said.original.get("id"))
    if value.get("jsonrpc") != "2.0":
        return _invalid(message_id)
    if "method" not in value and ("result" in value or "error" in value):
        return Reply()
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or not (params is None or isinstance(params, dict)):
        return _invalid(message_id)
    if "id" not in value:
        return Notification(method, params, size)
    if message_id is None or isinstance(message_id, Verbatim):
        return _invalid(message_id)
    return Request(message_id, method, params, size)


def _invalid(message_id: MessageId | Verbatim | None) -> Refused:
    return Refused("invalid_request", INVALID_REQUEST, "Invalid Request", message_id)


def _readable_id(value: object) -> MessageId | Verbatim | None:
    """What a message is to be answered under. MCP's ids are texts and whole numbers."""
    if isinstance(value, plain_json.Huge):
        return Verbatim(value.digits)
    if isinstance(value, str) and plain_json.has_half(value):
        return Verbatim(json.dumps(value))  # as an escape, in which form it came
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _outlined_id(outline: Outline) -> MessageId | Verbatim | None:
    try:
        value = plain_json.read(outline.json().decode()).original
    except (ValueError, RecursionError):
        return None
    return _readable_id(value.get("id")) if isinstance(value, dict) else None
