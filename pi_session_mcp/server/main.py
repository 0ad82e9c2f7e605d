"""`serve`: the order in which everything begins.

Until the handshake is answered, only a little of the standard library is imported; then what reads the configuration.
The MCP SDK and everything that serves calls is imported for the first message that needs it. Both happen in threads.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pi_session_mcp import __version__
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.inspection import forbid_inspection
from pi_session_mcp.server.catalog import INSTRUCTIONS, SERVER_NAME, TOOLS
from pi_session_mcp.server.descriptors import Inlet, Outlet
from pi_session_mcp.server.frames import LineSplitter
from pi_session_mcp.server.front import Front, Identity
from pi_session_mcp.server.lifecycle import PROCESS_SHUTDOWN_S, Stop, end_now
from pi_session_mcp.server.opening import Loading, Opening
from pi_session_mcp.server.stderr import StderrReporter, TransportErrors, say_internal_error, silence_foreign_voices
from pi_session_mcp.server.stdout_guard import StdoutGuard, seize

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.diagnostics import Diagnostic, Report
    from pi_session_mcp.server.frames import Line
    from pi_session_mcp.server.serving import Open

_IDENTITY: Final = Identity(SERVER_NAME, __version__, INSTRUCTIONS, TOOLS)


class World:
    """What every part of the server may use of the process."""

    def __init__(self) -> None:
        forbid_inspection()  # before there is a child that could look
        seized = seize()
        self.report: Report = StderrReporter(seized.stderr)
        self.guard = StdoutGuard(seized.foreign, self.report)
        self.stop = Stop(PROCESS_SHUTDOWN_S)
        self.inlet = Inlet(seized.stdin)
        self.outlet = Outlet(seized.stdout)
        self.waiting: list[Line] = []
        """What the client has sent and only the SDK can answer."""

    def finish(self) -> NoReturn:
        """End the process with the status that the first reason to stop has set."""
        self.outlet.pump()
        self.guard.finish()
        end_now(ExitStatus.OK if self.stop.status is None else self.stop.status)


def run(judge: Callable[[], Any] | None = None, load: Callable[[Any, World], Open] | None = None) -> NoReturn:
    """Serve one client on the process's stdin and stdout, until either ends or a signal comes.

    `judge` loads what decides whether the server may run, and `load` makes of it what is served; both are called in a
    thread. The usual ones read the operator's configuration.
    """
    world = World()
    try:
        silence_foreign_voices(world.report)
        world.guard.start()
        world.stop.listen()
        _serve(world, judge or load_configuration, load or load_application)
    except BaseException:  # noqa: BLE001 - the outermost boundary: one sanitized line, whatever it is
        say_internal_error(world.report, "serve")
        world.stop.request(ExitStatus.FAILURE)
    world.finish()


def load_configuration() -> Configuration:
    """The operator's configuration. Raises `ConfigError`."""
    from pi_session_mcp.config.load import config_path_for_server, load

    return load(config_path_for_server(os.environ))


def load_application(configuration: Configuration, world: World) -> Open:
    """What is served under that configuration."""
    from pi_session_mcp.server.head_start import head_start

    early = head_start(tuple(world.waiting), configuration)
    from pi_session_mcp.server.application import application  # imports the SDK

    return application(configuration, world.report, world.guard.count, early)


def _serve(world: World, judge: Callable[[], Any], load: Callable[[Any, World], Open]) -> None:
    gc.disable()  # what imports make stays
    splitter, front, complain = LineSplitter(), Front(_IDENTITY), TransportErrors(world.report)
    opening = Opening(world.inlet, world.outlet, splitter, front, complain, world.waiting)

    def load_the_rest(judged: Any) -> Callable[[], None]:
        begin = load(judged, world)
        from pi_session_mcp.server.serving import Serving
        from pi_session_mcp.server.transport import Connection

        def serve() -> None:
            given, waiting = tuple(front.given), tuple(world.waiting)
            connection = Connection(world.inlet, world.outlet, splitter, complain, given, waiting)
            Serving(connection, begin, world.report, world.stop, world.finish).run()

        return serve

    loading = Loading(judge, load_the_rest)
    opening.attend(loading, world.stop)
    if loading.failure is not None and world.stop.status is None:
        world.report(_startup_failed(loading.failure))
        world.stop.request(ExitStatus.FAILURE)
    elif loading.loaded is not None and world.stop.status is None:
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
