"""Pi in memory, for tests of the registry: it keeps `ports.PiSessions` and does what the test says, when it says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from pi_session_mcp.errors import Code, HostGone, Refusal
from pi_session_mcp.sessions.outcome import Outcome, outcome_of
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.terms.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.sessions.ports import SessionEvents, SessionSpec

Kind: TypeAlias = Literal["create", "prompt", "abort", "dispose"]


@dataclass(frozen=True, slots=True)
class Manual:
    """The run lasts until the test finishes it."""


@dataclass(frozen=True, slots=True)
class Finishes:
    """The run completes `signs` tool executions and ends at once."""

    stop_reason: str | None = "stop"
    text: str = "ok"
    signs: int = 0


Plan: TypeAlias = Manual | Finishes


class Call:
    """One call into Pi. What it does in Pi happens on completion, whether or not the caller still waits."""

    def __init__(self, kind: Kind, effect: Callable[[], None]) -> None:
        self.kind: Final = kind
        self.error: Exception | None = None
        self._effect = effect
        self._done = anyio.Event()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def complete(self, error: Exception | None = None) -> None:
        """Let the call succeed, or fail with `error` and without effect. Later completions change nothing."""
        if self.is_done:
            return
        self._done.set()
        self.error = error
        if error is None:
            self._effect()

    async def result(self) -> None:
        await self._done.wait()
        await checkpoint()
        if self.error is not None:
            raise self.error


@dataclass(eq=False)
class FakeHost:
    """A host process, by the sessions on it."""

    own: bool
    sessions: list[FakePiSession] = field(default_factory=list)
    alive: bool = True
    retired: bool = False

    def die(self) -> None:
        """The host is gone: whatever waits for it is told so, and every session not yet disposed of hears it."""
        if not self.alive:
            return
        self.alive = False
        for session in self.sessions:
            session.lose_host()

    def retire(self) -> None:
        self.retired = True
        self.end_if_unused()

    def end_if_unused(self) -> None:
        unfinished = [session for session in self.sessions if not session.disposed and not session.given_up]
        if self.retired and (self.own or not unfinished):
            asyncio.get_running_loop().call_soon(self.die)


class FakePi:
    """`ports.PiSessions` in memory.

    `hold(kind)` makes calls wait until `release(kind)` or `Call.complete()`; `plan` decides what becomes of prompts
    that start (`plans` for a certain text), `word` what Pi says to prompts. `refuses` names
    the providers and models that cannot be selected, with their codes.
    """

    def __init__(self) -> None:
        self.own_hosts = False
        self.plan: Plan = Manual()
        self.plans: dict[str, Plan] = {}
        self.refuses: dict[str, Code] = {}
        self.word = Preflight.STARTED
        self.refusal: Refusal | None = None
        self.calls: list[Call] = []
        self.sessions: list[FakePiSession] = []
        self.disposals = 0
        self.warmed = 0
        self.held: set[Kind] = set()
        self.prompts: list[str] = []
        self._shared = FakeHost(own=False)

    @property
    def creations(self) -> int:
        return len(self.sessions)

    def hold(self, *kinds: Kind) -> None:
        self.held.update(kinds)

    def release(self, kind: Kind, error: Exception | None = None) -> None:
        """Complete every waiting call of the kind, and hold no more."""
        self.held.discard(kind)
        for call in self.waiting(kind):
            call.complete(error)

    def waiting(self, kind: Kind) -> list[Call]:
        return [call for call in self.calls if call.kind == kind and not call.is_done]

    def begin(self, kind: Kind, effect: Callable[[], None]) -> Call:
        call = Call(kind, effect)
        self.calls.append(call)
        if kind not in self.held:
            call.complete()
        return call

    def warm(self) -> None:
        self.warmed += 1

    async def create(self, spec: SessionSpec, events: SessionEvents) -> FakePiSession:
        made: list[FakePiSession] = []

        refusal = self.refusal or self._refusal_of(spec)

        def make() -> None:
            if refusal is None:
                made.append(FakePiSession(self, self._host(), spec, events))

        call = self.begin("create", make)
        try:
            await call.result()
        except BaseException:
            # What was made, or still would be, is this side's to undo.
            call.complete(HostGone())
            for session in made:
                session.let_go()
            raise
        if refusal is not None:
            raise refusal
        return made[0]

    def _refusal_of(self, spec: SessionSpec) -> Refusal | None:
        for selected in (spec.profile.provider, spec.profile.model):
            if selected in self.refuses:
                return Refusal(self.refuses[selected])
        return None

    def _host(self) -> FakeHost:
        if self.own_hosts:
            return FakeHost(own=True)
        if self._shared.retired or not self._shared.alive:
            self._shared = FakeHost(own=False)
        return self._shared


class FakePiSession:
    """`ports.PiSession` in memory."""

    def __init__(self, pi: FakePi, host: FakeHost, spec: SessionSpec, events: SessionEvents) -> None:
        self.spec: Final = spec
        self.events: Final = events
        self.host: Final = host
        self.disposed = False
        self.given_up = False
        self.dispose_calls = 0
        self.running: int | None = None
        self.started = 0
        self.foreign = False
        self._pi = pi
        self._latched = False
        self._calls: list[Call] = []
        self._handed: set[int] = set()
        host.sessions.append(self)
        pi.sessions.append(self)

    @property
    def selection(self) -> Selection:
        profile = self.spec.profile
        return Selection(profile.provider, profile.model, profile.thinking_level)

    @property
    def own_host(self) -> bool:
        return self.host.own

    # --- the port ---------------------------------------------------------------------------------------------------

    async def prompt(self, turn: int, text: str) -> Preflight:
        assert turn not in self._handed, "a turn number was used twice"
        self._handed.add(turn)
        self._pi.prompts.append(text)
        words: list[Preflight] = []

        def take() -> None:
            words.append(self._pi.word)
            if words[0] is Preflight.STARTED:
                self._start(turn, self._pi.plans.get(text, self._pi.plan))
            self._latched = False

        await self._ask("prompt", take)
        return words[0]

    async def abort(self) -> None:
        await self._ask("abort", self._abort)

    async def dispose(self) -> None:
        self.dispose_calls += 1
        try:
            await self._ask("dispose", self.let_go)
        except HostGone:
            self.let_go()

    def end_host(self) -> None:
        self.given_up = True
        self.host.retire()

    async def _ask(self, kind: Kind, effect: Callable[[], None]) -> None:
        if not self.host.alive:
            raise HostGone
        call = self._pi.begin(kind, effect)
        self._calls.append(call)
        await call.result()

    # --- what Pi does -----------------------------------------------------------------------------------------------

    def _start(self, turn: int, plan: Plan) -> None:
        self.running = turn
        self.started += 1
        if self._latched:
            self.finish(outcome_of("aborted", aborted=True, text=""))
            return
        if isinstance(plan, Finishes):
            for _ in range(plan.signs):
                self.sign()
            self.finish(outcome_of(plan.stop_reason, aborted=False, text=plan.text))

    def _abort(self) -> None:
        self._latched = any(call.kind == "prompt" and not call.is_done for call in self._calls)
        if self.running is not None:
            self.finish(outcome_of("aborted", aborted=True, text=""))
        if self.foreign:
            self.run_foreign(active=False)

    def sign(self) -> None:
        """A tool execution of the running turn was completed."""
        if self.running is not None:
            self.events.activity(self.running)

    def finish(self, outcome: Outcome | None = None) -> None:
        """The running turn settles; by default with the answer "ok"."""
        if self.running is not None:
            turn, self.running = self.running, None
            self.events.settled(turn, outcome or outcome_of("stop", aborted=False, text="ok"))

    def run_foreign(self, *, active: bool) -> None:
        """An extension's own run starts or ends."""
        self.foreign = active
        self.events.foreign_run(active=active)

    def let_go(self) -> None:
        """Pi has disposed of the session; only the first time counts."""
        if not self.disposed:
            self.disposed = True
            self.running = None
            self._pi.disposals += 1
            if self.host.alive:
                self.host.end_if_unused()

    def lose_host(self) -> None:
        self.running = None
        for call in self._calls:
            call.complete(HostGone())
        if not self.disposed:
            self.events.host_ended()


def abort_failure() -> Refusal:
    """What an abort raises when Pi says that it failed."""
    return Refusal(Code.ABORT_FAILED)
