"""Random lives of a registry: whatever clients, Pi and time do in whatever order, the same things stay true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.sessions.outcome import Outcome, outcome_of
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.sessions.registry import Registry
from pi_session_mcp.sessions.state import SessionState
from pi_session_mcp.sessions.views import SessionView
from tests.fakes.pi import FakePi, FakePiSession, Finishes, Kind, Manual, abort_failure
from tests.support.registries import Wall, configuration
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from pi_session_mcp.diagnostics import Diagnostic
    from pi_session_mcp.sessions.views import TurnView

MAX_SESSIONS: Final = 3
SETTLED_WITHIN_TURNS: Final = 3
"""Turns of the loop after which a cancelled caller must have settled."""

Work: TypeAlias = "Callable[[], Awaitable[object]]"

kinds: st.SearchStrategy[Kind] = st.sampled_from(("create", "prompt", "abort", "dispose"))
outcomes = st.builds(
    outcome_of,
    stop_reason=st.sampled_from(("stop", "length", "toolUse", "aborted", "error", "pending", "news", None)),
    aborted=st.booleans(),
    text=st.sampled_from(("", " answer ", "\ud800")),
)
which = st.integers(min_value=0, max_value=40)
few_turns = st.sampled_from((0, 1, 2, 3, 5, None))
"""How far the loop turns after a rule; `None` lets everything happen that can."""


class Request:
    """A client's request, as a task with a scope by which it can be cancelled."""

    def __init__(self, loop: VirtualTimeLoop, work: Work, *, stays: bool = False) -> None:
        self.result: object = None
        self.refusal: Code | None = None
        self._stays = stays
        self._loop = loop
        self._scope: anyio.CancelScope | None = None
        self.task: asyncio.Task[None] = loop.create_task(self._run(work))

    async def _run(self, work: Work) -> None:
        with anyio.CancelScope() as self._scope:
            try:
                self.result = await work()
            except Refusal as refusal:
                self.refusal = refusal.code

    @property
    def can_leave(self) -> bool:
        """Whether it has begun; a shutdown cannot be cancelled."""
        return self._scope is not None and not self._stays

    def leave(self) -> None:
        assert self._scope is not None
        self._loop.call_soon(self._scope.cancel)


class RegistryLife(RuleBasedStateMachine):
    """Clients ask, Pi answers or does not, hosts die, time passes, and at the end the server stops."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.pi = FakePi()
        self.wall = Wall()
        self.diagnostics: list[Diagnostic] = []
        self.requests: list[Request] = []
        self.turns: dict[str, TurnView] = {}
        self.turns_of: dict[str, set[str]] = {}
        self.closed: dict[str, SessionView] = {}
        self.latest: dict[str, datetime] = {}
        self.asked_to_stop = False

    @initialize()
    def open(self) -> None:
        self.registry = Registry(configuration(MAX_SESSIONS), self.pi, report=self.diagnostics.append, wall=self.wall)
        self.stop = anyio.Event()
        self.server = self.loop.create_task(self._serve())
        self.loop.drain()

    async def _serve(self) -> None:
        async with self.registry:
            await self.stop.wait()

    def _ask(self, work: Work, turns: int | None) -> None:
        self.requests.append(Request(self.loop, work))
        self._turn(turns)

    def _do(self, effect: Callable[[], None], turns: int | None) -> None:
        """What Pi does, it does on the loop."""
        self.loop.call_soon(effect)
        self.loop._turn_once()
        self._turn(turns)

    def _turn(self, turns: int | None) -> None:
        if turns is None:
            self.loop.drain()
        else:
            for _ in range(turns):
                self.loop._turn_once()

    def _a_session(self, number: int) -> str:
        known = [view.id for view in self.registry.list()] + sorted(self.closed)
        return known[number % len(known)] if known else "nothing"

    def _a_pi_session(self, number: int) -> FakePiSession:
        return self.pi.sessions[number % len(self.pi.sessions)]

    @property
    def _has_pi_sessions(self) -> bool:
        return bool(self.pi.sessions)

    # --- clients ----------------------------------------------------------------------------------------------------

    @rule(own_host=st.booleans(), turns=few_turns)
    def start(self, own_host: bool, turns: int | None) -> None:  # noqa: FBT001 - a drawn value
        self.pi.own_hosts = own_host
        self._ask(lambda: self.registry.start("project"), turns)

    @rule(
        number=which,
        word=st.sampled_from((Preflight.STARTED, Preflight.STARTED, Preflight.STARTED, *Preflight)),
        plan=st.sampled_from((Manual(), Manual(), Finishes(), Finishes("error"), Finishes(signs=2))),
        turns=few_turns,
    )
    def prompt(self, number: int, word: Preflight, plan: Manual | Finishes, turns: int | None) -> None:
        self.pi.word, self.pi.plan = word, plan
        session_id = self._a_session(number)
        self._ask(lambda: self.registry.prompt(session_id, "work"), turns)

    @rule(number=which, turns=few_turns)
    def abort(self, number: int, turns: int | None) -> None:
        session_id = self._a_session(number)
        self._ask(lambda: self.registry.abort(session_id), turns)

    @rule(number=which, turns=few_turns)
    def close(self, number: int, turns: int | None) -> None:
        session_id = self._a_session(number)
        self._ask(lambda: self.registry.close(session_id), turns)

    @rule(number=which, timeout_s=st.sampled_from((0, 1, 50)), turns=few_turns)
    def wait(self, number: int, timeout_s: float, turns: int | None) -> None:
        views = list(self.turns.values())
        if views:
            turn = views[number % len(views)]
            self._ask(lambda: self.registry.wait_turn(turn.session_id, turn.turn_id, timeout_s=timeout_s), turns)

    @precondition(lambda self: bool(self.requests))
    @rule(number=which, turns=few_turns)
    def cancel(self, number: int, turns: int | None) -> None:
        request = self.requests[-1 - number % len(self.requests)]
        if request.can_leave:
            request.leave()
            for _ in range(SETTLED_WITHIN_TURNS):
                self.loop._turn_once()
            assert request.task.done(), "a cancelled caller settles at once"
            self._turn(turns)

    # --- Pi ---------------------------------------------------------------------------------------------------------

    @rule(kind=kinds)
    def hold(self, kind: Kind) -> None:
        self.pi.hold(kind)

    @rule(kind=kinds, turns=few_turns)
    def release(self, kind: Kind, turns: int | None) -> None:
        self._do(lambda: self.pi.release(kind), turns)

    @rule(kind=kinds, number=which, turns=few_turns)
    def answer_one(self, kind: Kind, number: int, turns: int | None) -> None:
        waiting = self.pi.waiting(kind)
        if waiting:
            self._do(waiting[number % len(waiting)].complete, turns)

    @rule(turns=few_turns)
    def fail_aborts(self, turns: int | None) -> None:
        self._do(lambda: self.pi.release("abort", abort_failure()), turns)

    @precondition(lambda self: self._has_pi_sessions)
    @rule(number=which, turns=few_turns)
    def sign(self, number: int, turns: int | None) -> None:
        self._do(self._a_pi_session(number).sign, turns)

    @precondition(lambda self: self._has_pi_sessions)
    @rule(number=which, outcome=outcomes, turns=few_turns)
    def finish(self, number: int, outcome: Outcome, turns: int | None) -> None:
        self._do(lambda: self._a_pi_session(number).finish(outcome), turns)

    @precondition(lambda self: self._has_pi_sessions)
    @rule(number=which, active=st.booleans(), turns=few_turns)
    def run_foreign(self, number: int, active: bool, turns: int | None) -> None:  # noqa: FBT001 - a drawn value
        session = self._a_pi_session(number)
        if session.host.alive and not session.disposed:
            self._do(lambda: session.run_foreign(active=active), turns)

    @precondition(lambda self: self._has_pi_sessions)
    @rule(number=which, turns=few_turns)
    def kill_host(self, number: int, turns: int | None) -> None:
        self._do(self._a_pi_session(number).host.die, turns)

    @precondition(lambda self: self._has_pi_sessions)
    @rule(number=which, turn=st.integers(0, 5), outcome=outcomes)
    def say_something_late(self, number: int, turn: int, outcome: Outcome) -> None:
        """Events of a turn that has settled, of one that never was, or of a session that is gone."""
        session = self._a_pi_session(number)
        if session.disposed or (turn != session.running and turn <= session.started - 1):

            def say() -> None:
                session.events.activity(turn)
                session.events.settled(turn, outcome)
                if session.disposed:
                    session.events.foreign_run(active=True)
                    session.events.host_ended()

            self._do(say, 0)

    # --- the world --------------------------------------------------------------------------------------------------

    @rule(by_s=st.sampled_from((0.1, 1, 2.5, 5, 5.1, 20)))
    def pass_time(self, by_s: float) -> None:
        self.loop.advance(by_s)

    @rule()
    def set_the_wall_clock_back(self) -> None:
        self.wall.time = self.wall.time.replace(year=self.wall.time.year - 1)

    @precondition(lambda self: not self.asked_to_stop)
    @rule(turns=few_turns, sure=st.integers(0, 9))
    def shut_down(self, turns: int | None, sure: int) -> None:
        if sure == 0:
            self.asked_to_stop = True
            self.requests.append(Request(self.loop, self.registry.shutdown, stays=True))
            self._turn(turns)

    # --- what stays true --------------------------------------------------------------------------------------------

    @invariant()
    def views_are_consistent(self) -> None:
        if not hasattr(self, "registry"):
            return
        views = self.registry.list()
        assert len(views) <= MAX_SESSIONS
        for view in views:
            self._check_session(view)
        for request in self.requests:
            self._check_result(request.result)
        assert self.diagnostics == []

    @invariant()
    def nothing_is_disposed_of_twice(self) -> None:
        assert all(session.dispose_calls <= 1 for session in self.pi.sessions)
        assert self.pi.disposals <= self.pi.creations

    def _check_session(self, view: SessionView) -> None:
        self._check_times(view.id, view.created_at, view.updated_at)
        assert ("lastError" in view.to_json()) == (view.state is SessionState.FAILED)
        if view.latest_turn_id is not None:
            self._note_turn_id(view.id, view.latest_turn_id)
            if view.state not in {SessionState.CLOSING, SessionState.CLOSED}:
                self._check_turn(self.registry.turn(view.id, view.latest_turn_id))

    def _note_turn_id(self, session_id: str, turn_id: str) -> None:
        self.turns_of.setdefault(session_id, set()).add(turn_id)
        started = {session.events.id: session.started for session in self.pi.sessions}  # type: ignore[attr-defined]
        assert len(self.turns_of[session_id]) <= started[session_id], "a turn without preflight"

    def _check_turn(self, view: TurnView) -> None:
        before = self.turns.get(view.turn_id)
        assert before is None or not before.is_terminal or view == before, "a terminal turn changed"
        self._check_times(view.turn_id, view.started_at, view.updated_at)
        assert view.is_terminal == (view.completed_at is not None)
        self.turns[view.turn_id] = view

    def _check_times(self, of: str, begin: datetime, update: datetime) -> None:
        assert begin <= update
        assert self.latest.get(of, update) <= update, "a timestamp went backwards"
        self.latest[of] = update

    def _check_result(self, result: object) -> None:
        if isinstance(result, SessionView) and result.state is SessionState.CLOSED:
            assert self.closed.setdefault(result.id, result) == result, "a closed session changed"
        if isinstance(result, tuple):
            session, turn = result
            assert session.latest_turn_id == turn.turn_id

    # --- the end ----------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            if hasattr(self, "registry"):
                self._session_running_ends()
                self._after_shutdown_nothing_is_open()
        finally:
            self.loop.close()

    def _session_running_ends(self) -> None:
        """Once what runs in Pi has ended, and whatever else Pi leaves unanswered."""
        self.loop.advance(60)
        for session in self.pi.sessions:
            if session.host.alive and not session.disposed:
                self._do(session.finish, None)
                self._do(lambda one=session: one.run_foreign(active=False), None)  # type: ignore[misc]
        self.loop.advance(60)
        self.pi.word = Preflight.REJECTED
        for view in self.registry.list():
            request = Request(self.loop, lambda one=view: self.registry.prompt(one.id, "work"))  # type: ignore[misc]
            self.loop.advance(60)
            assert request.refusal is not Code.SESSION_RUNNING

    def _after_shutdown_nothing_is_open(self) -> None:
        self._do(self.stop.set, None)
        self.loop.advance(60)
        assert self.server.done()
        self.server.result()
        assert all(request.task.done() for request in self.requests)
        assert self.registry.list() == ()
        assert self.registry.is_idle
        assert self.pi.disposals == self.pi.creations
        self.views_are_consistent()
        self.nothing_is_disposed_of_twice()


TestRegistryLife = RegistryLife.TestCase
TestRegistryLife.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    derandomize=True,
    database=None,
)
