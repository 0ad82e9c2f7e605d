"""What waits to be written to one external server. It is bounded, and adding to it never waits."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Self

import anyio
from mcp_types import JSONRPCNotification, JSONRPCRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_MESSAGES: Final = 1024


class Outbox:
    """Lines for one server, and which of our requests it has not answered. The MCP client writes to it as to a stream.

    If more would wait than may, the server does not read although it makes us answer. It is given up: `overrun` is
    called, and nothing more is taken.
    """

    def __init__(self, overrun: Callable[[], None]) -> None:
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._filled = anyio.Event()
        self._closed = False
        self._overrun = overrun
        self._waiting: set[int] = set()
        self._last = 0
        self._told: list[int] = []

    # --- what is answered --------------------------------------------------------------------------------------------

    def settle(self, number: int | str | None) -> int | None:
        """The number of the request that waits for an answer with this id, once. `None` if no request waits for it."""
        if isinstance(number, str) and number.isdecimal() and len(number) < 19:
            number = int(number)
        if not isinstance(number, int) or number not in self._waiting:
            return None
        self._waiting.discard(number)
        self._told = [last for last in self._told if last >= number]
        return number

    def forgives(self) -> bool:
        """Whether an answer without an id may be meant for a notification: some servers answer those as well.

        True once for each notification, until a later request was answered.
        """
        if not self._told:
            return False
        self._told.pop()
        return True

    def has_asked(self, number: int | str | None) -> bool:
        """Whether there ever was a request with this number. Its answer may be late, or come twice."""
        return str(number).isdecimal() and len(str(number)) < 19 and 0 < int(str(number)) <= self._last

    def _note(self, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCRequest(id=int(number)):
                self._waiting.add(number)
                self._last = max(self._last, number)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": int(number)}):
                self._waiting.discard(number)
                self._told.append(self._last)
            case JSONRPCNotification():
                self._told.append(self._last)
            case _:
                pass

    # --- lines -------------------------------------------------------------------------------------------------------

    def put(self, message: JSONRPCMessage) -> None:
        """Add a message. Raises `anyio.BrokenResourceError` when it does not fit, and from then on."""
        if self._closed:
            raise anyio.BrokenResourceError
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        if len(self._lines) == MAX_MESSAGES or self._size + len(line) > MAX_BYTES:
            self.close()
            self._overrun()
            raise anyio.BrokenResourceError
        self._note(message)
        self._lines.append(line)
        self._size += len(line)
        self._filled.set()

    async def take(self) -> bytes:
        """The next line. Waits until there is one."""
        while not self._lines:
            self._filled = anyio.Event()
            await self._filled.wait()
        line = self._lines.popleft()
        self._size -= len(line)
        return line

    def close(self) -> None:
        """Take no more, and forget what waits."""
        self._closed = True
        self._lines.clear()
        self._size = 0

    # --- as the stream of an MCP client ------------------------------------------------------------------------------

    async def send(self, item: SessionMessage, /) -> None:
        """See `put`."""
        self.put(item.message)

    async def aclose(self) -> None:
        """The client is done. What it has written is still sent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return None
