"""The connection to the client while calls are made: reads lines, makes each call in a task of its own, writes answers.

Bytes are read and written in the event loop, without a thread between. A call that is cancelled cannot tear a frame:
once encoded, a frame belongs to the outlet.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from typing import Protocol as TypingProtocol

import anyio
from anyio.lowlevel import checkpoint

from pi_session_mcp.platform.readiness import Readiness
from pi_session_mcp.server.wire.frames import INTERNAL_ERROR, slot
from pi_session_mcp.server.wire.protocol import CONNECTION_CLOSED, Call, Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, NoReturn

    from anyio.abc import TaskGroup

    from pi_session_mcp.server.process.descriptors import Inlet, Outlet
    from pi_session_mcp.server.wire import frames
    from pi_session_mcp.server.wire.protocol import Reply
    from pi_session_mcp.server.wire.reception import Reception
    from pi_session_mcp.sessions.turn import OnProgress


class Tools(TypingProtocol):
    """Who makes the calls."""

    async def call(self, name: str, arguments: Mapping[str, Any] | None, tell: OnProgress | None) -> Reply:
        """The reply of a tool that exists. `tell` is `None` when the client does not want progress."""


class Connection:
    """One client. `over` is set at the end of its input, and when it does not read our output any more."""

    def __init__(
        self,
        inlet: Inlet,
        outlet: Outlet,
        splitter: frames.LineSplitter,
        reception: Reception,
        waiting: Iterable[Call] = (),
    ) -> None:
        self.over = anyio.Event()
        self._inlet = inlet
        self._outlet = outlet
        self._splitter = splitter
        self._reception = reception
        self._waiting = tuple(waiting)
        self._blocked = anyio.Event()
        self._written = anyio.Event()
        self._scopes: dict[frames.MessageId, anyio.CancelScope] = {}

    async def write(self) -> NoReturn:
        """Write what could not be written at once. Runs until it is cancelled."""
        while True:
            await self._blocked.wait()
            while self._outlet.pending:
                await _writable(self._outlet)
                self._outlet.pump()
                self._reception.send_late()
                self._look()
            self._blocked = anyio.Event()

    async def serve(self, tools: Tools) -> None:
        """Make the calls of the client. Runs until it is cancelled; then calls in flight are answered as closed."""
        async with anyio.create_task_group() as calls:
            for call in self._waiting:
                self._begin(tools, call, calls)
            await self._read(partial(self._take, tools, calls))

    async def settled(self, within_s: float) -> None:
        """Wait until all is answered and written, or the time has passed."""
        with anyio.move_on_after(within_s):
            while not self._reception.is_settled:
                await self._written.wait()

    async def _read(self, take: Callable[[frames.Line], None]) -> None:
        readiness: Readiness | None = None
        while not self._inlet.ended:
            if readiness is None:
                assert self._inlet.fd is not None
                readiness = Readiness(self._inlet.fd)  # until the process ends, as the descriptor
            try:
                await readiness.wait()
            except PermissionError:  # epoll takes no regular file and no /dev/null: they are always ready
                await checkpoint()
            for line in self._splitter.feed(self._inlet.read()):
                take(line)
        for line in self._splitter.end():
            take(line)
        self.over.set()
        await anyio.sleep_forever()

    def _take(self, tools: Tools, calls: TaskGroup, line: frames.Line) -> None:
        heard = self._reception.take(line)
        if isinstance(heard, Call):
            self._begin(tools, heard, calls)
        elif isinstance(heard, Cancelled) and heard.slot in self._scopes:
            # The client does not wait any more, so the id is free at once, while the call still ends.
            self._scopes.pop(heard.slot).cancel()
            self._reception.in_flight.settle(heard.slot)
        self._look()

    def _begin(self, tools: Tools, call: Call, calls: TaskGroup) -> None:
        scope = self._scopes[slot(call.id)] = anyio.CancelScope()
        calls.start_soon(self._make, tools, call, scope)

    async def _make(self, tools: Tools, call: Call, scope: anyio.CancelScope) -> None:
        protocol = self._reception.protocol
        wire = None
        try:
            with scope:
                reply = await tools.call(call.name, call.arguments, self._teller(call))
                wire = protocol.result(call, reply)
        except anyio.get_cancelled_exc_class():
            wire = protocol.failure(call, CONNECTION_CLOSED, "Connection closed")
            raise
        except Exception:  # noqa: BLE001 - a defect of ours; its text must not reach the client or a log
            self._reception.defect("uncaught")
            wire = protocol.failure(call, INTERNAL_ERROR, "Internal error")
        finally:
            if wire is not None and not scope.cancel_called:
                del self._scopes[slot(call.id)]
                self._reception.answer(wire)
            self._look()

    def _teller(self, call: Call) -> OnProgress | None:
        if call.progress_token is None:
            return None

        async def tell(count: int) -> None:
            self._reception.tell(self._reception.protocol.progress(call, count))
            self._look()

        return tell

    def _look(self) -> None:
        """After anything was written or settled: wake those who wait for that."""
        if self._outlet.pending:
            self._blocked.set()
        if self._outlet.broken:
            self.over.set()
        if self._reception.is_settled:
            self._written.set()
            self._written = anyio.Event()


async def _writable(outlet: Outlet) -> None:
    assert outlet.fd is not None
    try:
        await anyio.wait_writable(outlet.fd)
    except PermissionError:
        await checkpoint()
