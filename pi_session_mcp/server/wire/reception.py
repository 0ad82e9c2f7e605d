"""What becomes of each line of the client: an answer at once, or a call that somebody makes. Standard library only.

It serves both loops of a server: the plain one before everything is loaded (`opening.py`), and the one that makes the
calls (`connection.py`). So the state of a connection never changes hands.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.server.process.stderr import say_internal_error
from pi_session_mcp.server.wire import frames
from pi_session_mcp.server.wire.in_flight import InFlight
from pi_session_mcp.server.wire.protocol import Answer, Call, Cancelled

if TYPE_CHECKING:
    from pi_session_mcp.diagnostics import Report
    from pi_session_mcp.server.process.descriptors import Outlet
    from pi_session_mcp.server.process.stderr import TransportErrors
    from pi_session_mcp.server.wire.protocol import Protocol

BACKLOG_BYTES: Final = 8 * 1024 * 1024
"""While so much waits for a client that does not read, answers wait and refusals are dropped."""


class Reception:
    """Takes lines and sends answers, with the book of the requests in flight."""

    def __init__(self, outlet: Outlet, protocol: Protocol, complain: TransportErrors, report: Report) -> None:
        self.in_flight = InFlight()
        self.protocol = protocol
        self._outlet = outlet
        self._complain = complain
        self._report = report
        self._late: deque[tuple[frames.MessageId, bytes]] = deque()

    @property
    def is_settled(self) -> bool:
        """Whether every request is answered and every answer is written, or there is no reader left."""
        return self._outlet.broken or not (self.in_flight or self._outlet.pending)

    def take(self, line: frames.Line) -> Call | Cancelled | None:
        """Answer a line if that can be done now. Returns the call to make or to end, if the line is about one."""
        message = frames.read(line)
        if isinstance(message, frames.Request):
            message = self.in_flight.admit(message) or message
        if isinstance(message, frames.Refused):
            self._refuse(message)
        elif not isinstance(message, frames.Reply):
            heard = self.protocol.hear(message)
            if not isinstance(heard, Answer):
                return heard
            self.answer(heard.wire)
        return None

    def answer(self, wire: dict[str, Any]) -> None:
        """Answer a request, as soon as there is room for it."""
        message_id = wire["id"]
        try:
            frame = frames.encode(wire)
        except (TypeError, ValueError, RecursionError):
            self.defect("unserializable")
            frame = frames.error_frame(message_id, frames.INTERNAL_ERROR, "Internal error")
        self._late.append((message_id, frame))
        self.send_late()

    def tell(self, wire: dict[str, Any]) -> None:
        """Send a notification, unless the client does not read what it has."""
        if self._outlet.pending < BACKLOG_BYTES:
            self._outlet.put(frames.encode(wire))

    def send_late(self) -> None:
        """Send the answers that wait for room. Each stays in flight until it is sent."""
        while self._late and self._outlet.pending < BACKLOG_BYTES:
            message_id, frame = self._late.popleft()
            self._outlet.put(frame)
            self.in_flight.settle(message_id)

    def defect(self, reason: str) -> None:
        """Report that something of ours went wrong."""
        say_internal_error(self._report, reason)

    def _refuse(self, refused: frames.Refused) -> None:
        if self._outlet.pending < BACKLOG_BYTES:
            self._outlet.put(refused.answer())
        self._complain(refused.reason)
