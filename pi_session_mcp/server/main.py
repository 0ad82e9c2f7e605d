"""`serve`: the order in which everything begins.

Until the handshake is answered, only a little of the standard library is imported. Then a thread reads the
configuration. What makes calls is imported by another thread, for the first call of a tool.
"""

from __future__ import annotations

import gc
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pi_session_mcp import __version__
from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.inspection import forbid_inspection
from pi_session_mcp.server.catalog import INSTRUCTIONS, SERVER_NAME, TOOLS
from pi_session_mcp.server.process.descriptors import Inlet, Outlet
from pi_session_mcp.server.process.lifecycle import Stop, end_now
from pi_session_mcp.server.process.stderr import (
    StderrReporter,
    TransportErrors,
    say_internal_error,
    silence_foreign_voices,
)
from pi_session_mcp.server.process.stdout_guard import StdoutGuard, seize
from pi_session_mcp.server.wire.frames import LineSplitter
from pi_session_mcp.server.wire.opening import Loading, Opening
from pi_session_mcp.server.wire.protocol import Identity, Protocol
from pi_session_mcp.server.wire.reception import Reception

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.diagnostics import Diagnostic, Report
    from pi_session_mcp.server.serving import Open
    from pi_session_mcp.server.wire.protocol import Call

_IDENTITY: Final = Identity(SERVER_NAME, __version__, INSTRUCTIONS, TOOLS)


class Process:
    """This process as a server's: what its parts share."""

    def __init__(self, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        forbid_inspection()  # before there is a child that could look
        seized = seize()
        self.report: Report = StderrReporter(seized.stderr)
        self.guard = StdoutGuard(seized.foreign, self.report, deadlines.report_interval_s)
        self.stop = Stop(deadlines.process_shutdown_s)
        self.inlet = Inlet(seized.stdin)
        self.outlet = Outlet(seized.stdout)
        self.calls: list[Call] = []
        """The calls that wait for the end of loading."""

    def finish(self) -> NoReturn:
        """End the process with the status that the first reason to stop has set."""
        self.outlet.pump()
        self.guard.finish()
        end_now(ExitStatus.OK if self.stop.status is None else self.stop.status)


def run(
    judge: Callable[[], Any] | None = None,
    load: Callable[[Any, Process], Open] | None = None,
    deadlines: Deadlines = DEADLINES,
) -> NoReturn:
    """Serve one client on the process's stdin and stdout, until either ends or a signal comes.

    `judge` decides whether the server may run, and `load` makes what is served from its result. Both are called in a
    thread. The usual ones read the operator's configuration.
    """
    process = Process(deadlines)
    try:
        silence_foreign_voices(process.report)
        process.guard.start()
        process.stop.listen()
        _serve(process, judge or load_configuration, load or load_application)
    except BaseException:  # noqa: BLE001 - the outermost boundary: one sanitized line for any exception
        say_internal_error(process.report, "serve")
        process.stop.request(ExitStatus.FAILURE)
    process.finish()


def load_configuration() -> Configuration:
    """The operator's configuration. Raises `ConfigError`."""
    from pi_session_mcp.config.load import config_path_for_server, load

    return load(config_path_for_server(os.environ))


def load_application(configuration: Configuration, process: Process) -> Open:
    """What is served under that configuration."""
    from pi_session_mcp.keeper.orphans import adopt_orphans
    from pi_session_mcp.server.head_start import head_start

    adopt_orphans()
    early = head_start(tuple(process.calls), configuration)
    from pi_session_mcp.server.assembly import assembled

    return partial(
        assembled, configuration, process.report, process.guard.count, early=early, deadlines=process.deadlines
    )


def _serve(process: Process, judge: Callable[[], Any], load: Callable[[Any, Process], Open]) -> None:
    gc.disable()  # what imports make stays
    splitter, deadlines = LineSplitter(), process.deadlines
    complain = TransportErrors(process.report, deadlines.report_interval_s)
    reception = Reception(process.outlet, Protocol(_IDENTITY), complain, process.report)
    opening = Opening(process.inlet, process.outlet, splitter, reception, process.calls, deadlines.judgement_after_s)

    def load_the_rest(judged: Any) -> Callable[[], None]:
        begin = load(judged, process)
        from pi_session_mcp.server.serving import Serving
        from pi_session_mcp.server.wire.connection import Connection

        def connect() -> Connection:
            return Connection(process.inlet, process.outlet, splitter, reception, process.calls)

        return Serving(connect, begin, process.report, process.stop, process.finish, deadlines).run

    loading = Loading(judge, load_the_rest)
    opening.attend(loading, process.stop)
    if loading.failure is not None and process.stop.status is None:
        process.report(_startup_failed(loading.failure))
        process.stop.request(ExitStatus.FAILURE)
    elif loading.loaded is not None and process.stop.status is None:
        gc.freeze()
        gc.enable()
        loading.loaded()


def _startup_failed(error: BaseException) -> Diagnostic:
    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.diagnostics import Diagnostic, Event
    from pi_session_mcp.errors import Code

    if not isinstance(error, ConfigError):
        return Diagnostic(level="error", event=Event.STARTUP_FAILED, code=Code.INTERNAL_ERROR)
    return Diagnostic(
        level="error",
        event=Event.STARTUP_FAILED,
        code=error.code,
        pointer=error.pointer,
        rule=error.rule,
        line=error.line,
        column=error.column,
    )
