"""From the end of loading to the end of the process: calls are made, then everything is shut down in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeAlias

import anyio

from pi_session_mcp.diagnostics import Diagnostic, Event, Report
from pi_session_mcp.errors import Code, ExitStatus
from pi_session_mcp.server.process.stderr import report_loop_errors, silence_logging

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.server.process.lifecycle import Stop
    from pi_session_mcp.server.wire.connection import Connection, Tools


class Application(Protocol):
    """What is served."""

    @property
    def tools(self) -> Tools:
        """Makes the calls."""

    async def shutdown(self) -> None:
        """End every session. Calls in flight are answered by it; new ones are refused."""


Open: TypeAlias = "Callable[[], AbstractAsyncContextManager[Application]]"
"""Makes the application. Leaving the context ends every process that it started."""


class Serving:
    """One run of the server, from the end of loading on. `finish` ends the process and does not return."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        open_application: Open,
        report: Report,
        stop: Stop,
        finish: Callable[[], object],
        deadlines: Deadlines,
    ) -> None:
        self._connect = connect
        self._open = open_application
        self._report = report
        self._stop = stop
        self._finish = finish
        self._deadlines = deadlines

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
        connection = self._connect()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.write)
            tasks.start_soon(self._watch, connection)
            await self._serve(connection, stopping, tasks)
            await connection.settled(self._deadlines.last_words_s)
            tasks.cancel_scope.cancel()
        # Here, and not after the loop was closed: closing it waits for threads that may be stuck.
        self._finish()

    async def _serve(self, connection: Connection, stopping: anyio.Event, tasks: anyio.abc.TaskGroup) -> None:
        try:
            async with self._open() as application:
                tasks.start_soon(connection.serve, application.tools)
                await stopping.wait()
                await application.shutdown()
        except Exception:  # noqa: BLE001 - any failure ends the process now, and foreign text is not shown
            if stopping.is_set():
                self._say(Event.SHUTDOWN_FAILED)
            else:
                self._say(Event.STARTUP_FAILED)
                self._stop.request(ExitStatus.FAILURE)

    async def _watch(self, connection: Connection) -> None:
        await connection.over.wait()
        self._stop.request(ExitStatus.OK)

    def _say(self, event: Event) -> None:
        self._report(Diagnostic(level="error", event=event, code=Code.INTERNAL_ERROR))
