"""The requests in flight, and which further ones must be refused because of them. Pure; standard library only."""

from __future__ import annotations

from typing import Final

from pi_session_mcp.server.wire.frames import INVALID_REQUEST, MessageId, Refused, Request, slot

MAX_REQUESTS: Final = 1024
MAX_BYTES: Final = 64 * 1024 * 1024
"""Of the lines of all requests in flight, together."""


class InFlight:
    """The requests that were taken and not settled yet, and the bytes of their lines."""

    def __init__(self) -> None:
        self._sizes: dict[MessageId, int] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def admit(self, request: Request) -> Refused | None:
        """Take a request, or say why not."""
        key = slot(request.id)
        if key in self._sizes:
            # Two with one name would share a cancellation, and the client could not tell their answers apart.
            return Refused("duplicate_id", INVALID_REQUEST, "Request id is already in flight", request.id)
        if len(self._sizes) >= MAX_REQUESTS or self.bytes + request.size > MAX_BYTES:
            return Refused("too_many_requests", INVALID_REQUEST, "Too many requests in flight", request.id)
        self._sizes[key] = request.size
        self.bytes += request.size
        return None

    def settle(self, message_id: MessageId) -> None:
        """The request was answered, or never will be. Unknown ids are ignored."""
        self.bytes -= self._sizes.pop(slot(message_id), 0)
