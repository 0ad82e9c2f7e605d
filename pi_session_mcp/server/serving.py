"""From the hand-over to the end of the process: the SDK's server on our transport, and an orderly shutdown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import anyio

from pi_session_mcp.diagnostics import Diagnostic, Event, Report
from pi_session_mcp.errors import Code, ExitStatus
from pi_session_mcp.server.stderr import report_loop_errors, silence_logging
from pi_session_mcp.server.transport import Connection, Transport

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from mcp.server.lowlevel import Server

    from pi_session_mcp.server.lifecycle import Stop

_LAST_WORDS_S: Final = 1.0
"""How long the client gets to read the last answers."""


class Application(Protocol):
    """What is served."""

    @property
    def server(self) -> Server[Any]:
        """Answers the calls."""

    async def shutdown(self) -> None:
        """End every session. Calls in flight are answered by it; new ones are refused."""


Open: TypeAlias = "Callable[[], AbstractAsyncContextManager[Application]]"
"""Makes the application. Leaving the context ends every process that it started."""


class Serving:
    """One run of the server, from the hand-over on. `finish` ends the process and does not return."""

    def __init__(
        self, connection: Connection, open_application: Open, report: Report, stop: Stop, finish: Callable[[], object]
    ) -> None:
        self._connection = connection
        self._open = open_application
        self._report = report
        self._stop = stop
        self._finish = finish

    def run(self) -> None:
        """Serve until the end is requested."""
        silence_logging(self._report)
        anyio.run(self._run)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(False)
        loop.set_exception_handler(report_loop_errors(self._report))
        stopping = anyio.Event()
        self._stop.on_request(lambda: loop.call_soon_threadsafe(stopping.set))
        transport = Transport(self._connection, self._report)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.output.run)
            tasks.start_soon(self._watch, transport)
            await self._serve(transport, stopping, tasks)
            await transport.output.settled(_LAST_WORDS_S)
            tasks.cancel_scope.cancel()
        # Here, and not after the loop was closed: closing it waits for threads that may be stuck.
        self._finish()

    async def _serve(self, transport: Transport, stopping: anyio.Event, tasks: anyio.abc.TaskGroup) -> None:
        try:
            async with self._open() as application:
                tasks.start_soon(self._answer, application, transport)
                await stopping.wait()
                await application.shutdown()
        except Exception:  # noqa: BLE001 - whatever fails now, the process ends, and says no foreign text
            if stopping.is_set():
                self._say(Event.SHUTDOWN_FAILED)
            else:
                self._say(Event.STARTUP_FAILED)
                self._stop.request(ExitStatus.FAILURE)

    async def _answer(self, application: Application, transport: Transport) -> None:
        server = application.server
        try:
            await server.run(transport.reading, transport.writing, server.create_initialization_options())
        except Exception:  # noqa: BLE001 - the SDK must not take the process down with a trace of its own
            self._say(Event.INTERNAL_ERROR)
        self._stop.request(ExitStatus.FAILURE)

    async def _watch(self, transport: Transport) -> None:
        await transport.over.wait()
        if transport.answers_differ:
            self._say(Event.INTERNAL_ERROR, "answers_differ")
            self._stop.request(ExitStatus.FAILURE)
        self._stop.request(ExitStatus.OK)

    def _say(self, event: Event, reason: str | None = None) -> None:
        self._report(Diagnostic(level="error", event=event, code=Code.INTERNAL_ERROR, reason=reason))
