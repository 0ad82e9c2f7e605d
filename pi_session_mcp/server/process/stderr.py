"""Diagnostics on stderr: never blocking, never foreign text. Standard library only."""

from __future__ import annotations

import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.server.process.descriptors import Outlet

if TYPE_CHECKING:
    import asyncio
    import logging
    from types import TracebackType

    from pi_session_mcp.diagnostics import Diagnostic, Report


class StderrReporter:
    """Writes diagnostics to a descriptor of its own. A line that does not fit now is dropped and counted.

    The next line that is written carries the count as `dropped`. Any thread may call it; a signal handler may not.
    """

    def __init__(self, fd: int | None) -> None:
        self._outlet = Outlet(fd)
        self._lock = threading.Lock()
        self._dropped = 0

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Say it, or count it."""
        from dataclasses import replace

        with self._lock:
            if not self._outlet.pump():
                self._dropped += 1
                return
            said = replace(diagnostic, dropped=self._dropped) if self._dropped else diagnostic
            self._dropped = 0
            self._outlet.put(said.to_line().encode() + b"\n")


def silence_foreign_voices(report: Report) -> None:
    """Whatever Python would print about an exception becomes one `internal_error` without its text."""

    def uncaught(kind: type[BaseException], _value: BaseException, _trace: TracebackType | None) -> None:
        if not issubclass(kind, SystemExit | KeyboardInterrupt):
            say_internal_error(report, "uncaught")

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, SystemExit):
            say_internal_error(report, "thread")

    def unraisable(_args: object) -> None:
        say_internal_error(report, "unraisable")

    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
    sys.unraisablehook = unraisable


def silence_logging(report: Report) -> None:
    """Errors that libraries log become `internal_error`. The rest of what they log is dropped."""
    import logging

    class Sanitized(logging.Handler):
        """Keeps the fact and drops the text."""

        def emit(self, _record: logging.LogRecord) -> None:
            say_internal_error(report, "logged")

    root = logging.getLogger()
    root.handlers[:] = [Sanitized(logging.ERROR)]
    logging.raiseExceptions = False
    logging.captureWarnings(capture=False)


def report_loop_errors(report: Report) -> Any:
    """An exception handler for the event loop."""

    def handler(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
        say_internal_error(report, "loop")

    return handler


class TransportErrors:
    """Says that the client sent what is no message: the reason, at most once in `interval_s`."""

    def __init__(self, report: Report, interval_s: float = DEADLINES.report_interval_s) -> None:
        self._report = report
        self._interval_s = interval_s
        self._silent_until = 0.0

    def __call__(self, reason: str) -> None:
        """Say it, unless it is too soon."""
        from pi_session_mcp.diagnostics import Diagnostic, Event

        now = monotonic()
        if now >= self._silent_until:
            self._silent_until = now + self._interval_s
            self._report(Diagnostic(level="warning", event=Event.MCP_TRANSPORT_ERROR, reason=reason))


def say_internal_error(report: Report, reason: str) -> None:
    """Say that something of ours went wrong; `reason` is a word of ours for where."""
    from pi_session_mcp.diagnostics import Diagnostic, Event
    from pi_session_mcp.errors import Code

    report(Diagnostic(level="error", event=Event.INTERNAL_ERROR, code=Code.INTERNAL_ERROR, reason=reason))
