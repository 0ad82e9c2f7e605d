"""A caller who is cancelled, at every point where it can be: it settles at once and leaves nothing behind.

Each test drives the loop turn by turn, so "every point" is meant literally: the caller is cancelled after `leave`
turns, and Pi answers after `answer` turns, for every pair until neither makes a difference any more.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
import pytest

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.sessions.registry import Registry
from pi_session_mcp.sessions.state import SessionState
from tests.fakes.pi import FakePi
from tests.support.registries import Wall, configuration
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from pi_session_mcp.diagnostics import Diagnostic
    from pi_session_mcp.sessions.views import SessionView
    from tests.fakes.pi import Kind

TURNS = 14
"""More turns of the loop than any call needs that is answered at once; the tests check that it is so."""

Way: TypeAlias = Literal["scope", "task"]
Work: TypeAlias = "Callable[[], Awaitable[object]]"


class Bench:
    """A registry with one place, on a loop that the test turns by hand."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self.loop = loop
        self.pi = FakePi()
        self.diagnostics: list[Diagnostic] = []
        self.registry = Registry(configuration(max_sessions=1), self.pi, report=self.diagnostics.append, wall=Wall())
        self._stop = anyio.Event()
        self._server = loop.create_task(self._serve())
        loop.drain()

    async def _serve(self) -> None:
        async with self.registry:
            await self._stop.wait()

    def turn(self, times: int) -> None:
        for _ in range(times):
            self.loop._turn_once()

    def ask(self, work: Coroutine[object, object, SessionView]) -> SessionView:
        task = self.loop.create_task(work)
        self.loop.advance(60)
        return task.result()

    def end(self) -> None:
        """Shut down; nothing may be left."""
        self._stop.set()
        self.loop.advance(60)
        assert self._server.done()
        self._server.result()
        assert self.registry.is_idle
        assert self.pi.disposals == self.pi.creations
        assert [session.dispose_calls for session in self.pi.sessions] == [1] * self.pi.creations
        assert self.diagnostics == []


class Caller:
    """A call that can be cancelled by its scope, as the MCP server does, or by its task, as asyncio does."""

    def __init__(self, loop: VirtualTimeLoop, work: Work, way: Way) -> None:
        self.refused = False
        self.succeeded = False
        self._scope: anyio.CancelScope | None = None
        self._way = way
        self._loop = loop
        self.task: asyncio.Task[None] = loop.create_task(self._run(work))

    async def _run(self, work: Work) -> None:
        with anyio.CancelScope() as self._scope:
            try:
                await work()
                self.succeeded = True
            except Refusal:
                self.refused = True

    def leave(self) -> None:
        if self._way == "task" or self._scope is None:
            self.task.cancel()
        else:
            self._loop.call_first(self._scope.cancel)


@contextmanager
def bench() -> Iterator[Bench]:
    loop = VirtualTimeLoop()
    try:
        made = Bench(loop)
        yield made
        made.end()
    finally:
        loop.close()


def play(at: Bench, caller: Caller, kind: Kind, *, leave: int, answer: int) -> None:
    """Turn the loop until the caller has left and Pi has answered, each after its number of turns."""
    passed = 0
    for when, what in sorted([(leave, "leave"), (answer, "answer")]):
        at.turn(when - passed)
        passed = when
        if what == "answer":
            at.pi.release(kind)
            continue
        had_ended = caller.task.done()
        caller.leave()
        at.turn(3)
        passed += 3
        assert caller.task.done(), "a cancelled caller settles at once"
        assert had_ended or not caller.succeeded, "cancellation is looked at last"
    at.loop.drain()


@pytest.mark.parametrize("way", ["scope", "task"])
@pytest.mark.parametrize("leave", range(TURNS))
def test_a_start_cancelled_at_any_point_leaves_nothing(leave: int, way: Way) -> None:
    for answer in range(TURNS):
        start_and_leave(leave, answer, way)


def start_and_leave(leave: int, answer: int, way: Way) -> None:
    with bench() as at:
        at.pi.hold("create")
        caller = Caller(at.loop, lambda: at.registry.start("project"), way)
        play(at, caller, "create", leave=leave, answer=answer)

        if caller.succeeded:
            assert len(at.registry.list()) == 1
        else:
            assert at.registry.list() == ()
            assert at.pi.disposals == at.pi.creations
            assert at.ask(at.registry.start("project")).state is SessionState.IDLE


@pytest.mark.parametrize("way", ["scope", "task"])
@pytest.mark.parametrize("leave", range(TURNS))
def test_a_prompt_cancelled_at_any_point_is_a_turn_or_leaves_no_trace(leave: int, way: Way) -> None:
    for answer in range(TURNS):
        prompt_and_leave(leave, answer, way)


def prompt_and_leave(leave: int, answer: int, way: Way) -> None:
    with bench() as at:
        before = at.ask(at.registry.start("project"))
        at.pi.hold("prompt")
        caller = Caller(at.loop, lambda: at.registry.prompt(before.id, "work"), way)
        play(at, caller, "prompt", leave=leave, answer=answer)

        after = at.registry.get(before.id)
        if caller.succeeded:
            assert after.latest_turn_id is not None
            assert after.state is SessionState.RUNNING
        else:
            assert after == before
            assert at.pi.sessions[0].running is None


@pytest.mark.parametrize("kind", ["start", "prompt"])
def test_the_points_above_cover_the_whole_call(kind: str) -> None:
    with bench() as at:
        if kind == "start":
            caller = Caller(at.loop, lambda: at.registry.start("project"), "scope")
        else:
            session = at.ask(at.registry.start("project"))
            caller = Caller(at.loop, lambda: at.registry.prompt(session.id, "work"), "scope")
        at.turn(TURNS - 4)

        assert caller.succeeded


@pytest.mark.parametrize("answer", range(TURNS))
def test_a_start_that_shutdown_overtakes_at_any_point_is_admitted_or_leaves_nothing(answer: int) -> None:
    with bench() as at:
        at.pi.hold("create")
        caller = Caller(at.loop, lambda: at.registry.start("project"), "scope")
        at.turn(5)
        at.pi.release("create")
        at.turn(answer)
        at.loop.create_task(at.registry.shutdown())
        at.loop.advance(60)

        assert caller.succeeded or caller.refused
        assert at.registry.list() == ()
        assert at.pi.disposals == at.pi.creations == 1


def test_the_place_of_a_cancelled_start_is_free_only_when_its_session_is_gone() -> None:
    with bench() as at:
        at.pi.hold("create", "dispose")
        caller = Caller(at.loop, lambda: at.registry.start("project"), "scope")
        at.loop.drain()
        caller.leave()
        at.loop.drain()
        refused = []
        kinds: tuple[Kind, ...] = ("create", "dispose")
        for kind in kinds:
            probe = Caller(at.loop, lambda: at.registry.start("project"), "scope")
            at.loop.drain()
            refused.append(probe.refused)
            at.pi.release(kind)
            at.loop.drain()

        assert caller.task.done()
        assert refused == [True, True]
        assert at.ask(at.registry.start("project")).state is SessionState.IDLE


def test_a_cancelled_start_that_fails_late_frees_its_place() -> None:
    with bench() as at:
        at.pi.hold("create")
        caller = Caller(at.loop, lambda: at.registry.start("project"), "scope")
        at.loop.drain()
        caller.leave()
        at.loop.drain()
        at.pi.release("create", Refusal(Code.UNKNOWN_MODEL))
        at.loop.drain()

        assert at.ask(at.registry.start("project")).state is SessionState.IDLE
