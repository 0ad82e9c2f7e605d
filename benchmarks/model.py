"""A model that answers at once, or after as many milliseconds as the prompt asks for ("wait 50").

A program of its own, run as `python -I model.py`, so that a turn's time is the server's: it keeps connections open, and
does nothing but send one fixed answer. Prints its port; ends when stdin does.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from typing import Any


def _chunk(**members: object) -> str:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", **members}
    return f"data: {json.dumps(chunk)}\n\n"


_EVENTS = (
    _chunk(choices=[{"index": 0, "delta": {"role": "assistant", "content": "done"}, "finish_reason": None}])
    + _chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    + _chunk(choices=[], usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
    + "data: [DONE]\n\n"
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(_EVENTS) + _EVENTS
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_WAIT = re.compile(r"wait (\d+)")


def wait_s(body: bytes) -> float:
    """How long the last user message of a request wants its answer to take, in seconds."""
    prompts = [message for message in json.loads(body)["messages"] if message["role"] == "user"]
    found = _WAIT.search(json.dumps(prompts[-1]["content"])) if prompts else None
    return int(found[1]) / 1000 if found else 0.0


class Connection(asyncio.Protocol):
    """One connection of a client, with one request at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete now."""
        self._received += data
        while (body := self._next()) is not None:
            delay_s = wait_s(body)
            if delay_s:
                asyncio.get_running_loop().call_later(delay_s, self._transport.write, ANSWER)
            else:
                self._transport.write(ANSWER)

    def _next(self) -> bytes | None:
        head, separator, rest = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head + b"\r\n")
        size = int(length[1]) if length else 0
        if not separator or len(rest) < size:
            return None
        self._received = rest[size:]
        return rest[:size]


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=256)
    os.write(1, f"{server.sockets[0].getsockname()[1]}\n".encode())
    over = asyncio.Event()
    loop.add_reader(0, lambda: None if os.read(0, 64) else over.set())
    await over.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
    sys.exit(0)
