"""The demonstration: starts server, client, Pi and model, and leaves nothing of them behind."""

from __future__ import annotations

import logging
import os
import signal
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.demo.life import live
from pi_session_mcp.demo.steps import NotSeen, Seen, Steps
from pi_session_mcp.demo.world import throw_away_world
from pi_session_mcp.runtime.overrides import NothingAsked
from pi_session_mcp.runtime.problem import REMEDIATIONS, RuntimeCode
from pi_session_mcp.runtime.status import status_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from pi_session_mcp.demo.report import DemoReport, OnBegin, OnStep
    from pi_session_mcp.demo.world import DemoWorld

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(on_step: OnStep, on_begin: OnBegin = lambda _: None) -> DemoReport:
    """Take every step and call `on_step` with each. A step that fails has `ok=False`; it raises nothing.

    A signal ends the demonstration. Once nothing is left of what was started, the signal is passed to the handler that
    was set before. In the same way exceptions of the callbacks are raised at the end. Call this from the main thread.
    """
    # The client library logs foreign text. The steps say what matters.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False
    steps = Steps(on_begin, on_step)
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        heard = anyio.run(_until_signal, lambda: _demonstrate(steps), *_heeded(handlers))
    except BaseExceptionGroup as group:
        raise _first(group) from None
    if heard is not None:
        signal.signal(heard, handlers[heard])
        signal.raise_signal(heard)
    return steps.report


def _heeded(handlers: Mapping[signal.Signals, object]) -> list[signal.Signals]:
    """The signals that we handle. Signals that our parent wants us to ignore are not among them."""
    return [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]


async def _until_signal(act: Callable[[], Awaitable[None]], *numbers: signal.Signals) -> signal.Signals | None:
    """Await `act`. A signal cancels it and is returned once `act` has cleaned up. Further signals change nothing.

    Otherwise a signal would raise an exception at any line, and asyncio's own cancelling would cut cleanups short.
    """
    heard: list[signal.Signals] = []

    async def listen(tasks: TaskGroup) -> None:
        async for number in signals:
            heard.append(number)
            tasks.cancel_scope.cancel()

    with anyio.open_signal_receiver(*numbers) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, tasks)
            await act()
            tasks.cancel_scope.cancel()
    return heard[0] if heard else None


async def _demonstrate(steps: Steps) -> None:
    try:
        with throw_away_world() as world:
            if await steps.take("Node and the Pi SDK are there", lambda: _look_for_runtime(world)):
                await live(steps, world)
    except OSError:
        await steps.take("A throw-away directory is there", _no_directory)


async def _no_directory() -> Seen:
    raise NotSeen("It could not be made, used or removed.", "Let TMPDIR name a directory with free space.")


async def _look_for_runtime(world: DemoWorld) -> Seen:
    found = await status_async(NothingAsked(), world.environment(os.environ), world.root)
    if not found.ok:
        # If nothing is installed, we name `runtime install`, even without Node: that command says what to do.
        code = found.sdk.code if found.sdk.code is not RuntimeCode.OK else found.node.code
        raise NotSeen(code.value, str(REMEDIATIONS[code]))
    return Seen.lines(f"Node {found.node.version}, Pi SDK {found.sdk.version}")


def _first(error: BaseException) -> BaseException:
    """The first exception in a group, because our callers expect plain exceptions."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
