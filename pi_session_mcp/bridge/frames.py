"""What an external MCP server writes, as messages: bounded lines, and only those that are JSON-RPC. Pure.

Time is linear in what arrives, however it is cut into chunks. What is no message is dropped, as if it was never sent.
"""

from __future__ import annotations

import json
from typing import Any, Final

from mcp_types import JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from pydantic_core import from_json

MAX_FRAME_BYTES: Final = 4 * 1024 * 1024
"""Of one line, without its end."""


class LineSplitter:
    """Cuts chunks into lines. A line that is too long is dropped as it arrives, and counted."""

    def __init__(self) -> None:
        self.too_long = 0
        """How many lines were too long so far, the one that is still arriving included."""
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that the chunk completes, without their ends. Only `\\n` ends a line."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._keep(end)
            if self._size <= MAX_FRAME_BYTES:
                lines.append(b"".join(self._pieces))
            self._pieces, self._size = [], 0
        self._keep(rest)
        return lines

    def _keep(self, piece: bytes) -> None:
        before, self._size = self._size, self._size + len(piece)
        if self._size <= MAX_FRAME_BYTES:
            self._pieces.append(piece)
        elif before <= MAX_FRAME_BYTES:
            self._pieces = []
            self.too_long += 1


def read_message(line: bytes) -> JSONRPCMessage | None:
    """The message of one line, `None` if it is none: no UTF-8, no JSON, not finite, or not JSON-RPC."""
    try:
        message = jsonrpc_message_adapter.validate_python(from_json(line, allow_inf_nan=False), by_name=False)
    except ValueError:
        return None
    return _without_ambiguous_error(message, line)


def _without_ambiguous_error(message: JSONRPCMessage, line: bytes) -> JSONRPCMessage:
    """An error result that says a key twice, anywhere, is reduced to a bare error.

    Of two equal keys the last one has won already, unseen; and what an error result says decides which of our own texts
    a model gets.
    """
    if (
        not isinstance(message, JSONRPCResponse)
        or message.result.get("isError") is not True
        or _says_each_key_once(line)
    ):
        return message
    return JSONRPCResponse(jsonrpc="2.0", id=message.id, result={"content": [], "isError": True})


def _says_each_key_once(line: bytes) -> bool:
    repeated = False

    def note(members: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in members}) < len(members)

    json.loads(line, object_pairs_hook=note, parse_int=len)  # a long number is not worth converting
    return not repeated
