"""One run of setup: everything that can refuse first, then the fence, then one target after the other."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

import anyio
import anyio.lowlevel

from pi_session_mcp.config.errors import ConfigError
from pi_session_mcp.config.load import config_path_for_operator
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.text import shown_text
from pi_session_mcp.setup.clients.base import (
    AskedFrom,
    CommandFailed,
    CommandFailure,
    Discovery,
    Seen,
    can_be_registered,
)
from pi_session_mcp.setup.fence import fence
from pi_session_mcp.setup.guardian import Guarded
from pi_session_mcp.setup.ownership import Ownership, OwnershipUnavailable
from pi_session_mcp.setup.plan import foresee, plan_apply, plan_rebind, plan_removal
from pi_session_mcp.setup.registration import registration_of
from pi_session_mcp.setup.result import Finding, Operation, Result, SetupCode, Status, Stopped
from pi_session_mcp.setup.state_directory import NEUTRAL, prepare, require_locks, require_safe
from pi_session_mcp.setup.steps import Doing
from pi_session_mcp.setup.transaction import Subject, carry_out
from pi_session_mcp.setup.verify import Handshake, verify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from pi_session_mcp.setup.clients.base import Client
    from pi_session_mcp.setup.fence import Fence
    from pi_session_mcp.setup.inputs import SetupInputs
    from pi_session_mcp.setup.plan import Plan, Scene
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target

_NEED_NO_INTENT: Final = frozenset({Operation.OVERVIEW, Operation.ROLLBACK, Operation.REMOVE})
_LOOKS: Final = frozenset({Operation.OVERVIEW, Operation.DRY_RUN})
_TURNS_OF_A_SIGNAL: Final = 5
"""A signal that came at the last moment takes this many turns of the event loop to be heard, and is still to count."""
_REGISTERING: Final = frozenset({Operation.DRY_RUN, Operation.APPLY})
_IN_ORDER: Final = frozenset({SetupCode.ABSENT, SetupCode.EQUIVALENT, SetupCode.ALREADY_EQUIVALENT, SetupCode.APPLIED})
_NOWHERE: Final = "0" * 64
"""Stands for the release and the paths of an installation that removes and does not register."""


def run(operation: Operation, targets: Iterable[Target], inputs: SetupInputs) -> Result:
    """Do `operation` for each target once, in order; the result says how each came out. Never raises `Stopped`.

    SIGINT and SIGTERM end what runs, and then the result; what was in the middle is finished by the next run.
    """
    course = Course(operation, tuple(dict.fromkeys(targets)), inputs)
    try:
        course.prepare()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            anyio.run(_until_signalled, course)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    except Stopped as stopped:
        course.settle_rest(stopped.code)
    except OSError:
        course.settle_rest(SetupCode.OPERATION_FAILED)
    return course.result()


async def _until_signalled(course: Course) -> None:
    async with anyio.create_task_group() as group:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:

            async def stop_at_signal() -> None:
                async for number in signals:
                    if course.interrupted is None:
                        was_asked = number == signal.SIGINT
                        course.interrupted = ExitStatus.INTERRUPTED if was_asked else ExitStatus.TERMINATED
                    group.cancel_scope.cancel()

            group.start_soon(stop_at_signal)
            try:
                await course.run()
            except Stopped as stopped:
                course.settle_rest(stopped.code)
            except OSError:  # this process has no descriptors or no memory left, say
                course.settle_rest(SetupCode.OPERATION_FAILED)
            for _ in range(_TURNS_OF_A_SIGNAL):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()


@dataclass(slots=True)
class Course:
    """The run itself, and what it has found so far."""

    operation: Operation
    targets: tuple[Target, ...]
    inputs: SetupInputs
    findings: dict[Target, Finding] = field(default_factory=dict)
    interrupted: ExitStatus | None = None
    _state: Path = Path(os.devnull)
    _intent: Registration = field(default_factory=lambda: registration_of(_NOWHERE, _NOWHERE))
    _release: str = _NOWHERE

    def prepare(self) -> None:
        """Everything that needs no client. Raises `Stopped`, and then nothing was written and no client has run."""
        inputs = self.inputs
        if not inputs.system.is_supported:
            raise Stopped(SetupCode.PLATFORM_UNSUPPORTED)
        self._state = inputs.state(inputs.environ)
        if self.operation in _NEED_NO_INTENT:
            with suppress(Stopped):
                self._intend()
        else:
            self._intend()
            if not inputs.doctor_is_clean():
                raise Stopped(SetupCode.DOCTOR_FAILED)
        if self.operation in _LOOKS:
            require_safe(self._state)  # it writes nothing, so it needs no directory to write in
            return
        require_locks(self._state, inputs.system)
        prepare(self._state)
        require_locks(self._state, inputs.system)

    async def run(self) -> None:
        """Every target in order. Raises `Stopped` when it cannot go on for any."""
        async with self._fenced() as held:
            for target in self.targets:
                try:
                    self.findings[target] = await self._one(target, held)
                except Stopped as stopped:
                    self.findings[target] = Finding(
                        target, self._status(stopped), stopped.code, in_the_way=stopped.in_the_way
                    )

    def _status(self, stopped: Stopped) -> Status:
        """In an overview a client that is not installed is one where nothing is registered."""
        is_absent = self.operation is Operation.OVERVIEW and stopped.code is SetupCode.CLIENT_MISSING
        return Status.ABSENT if is_absent else stopped.status

    def settle_rest(self, code: SetupCode) -> None:
        """Say `code` of every target that nothing was said of."""
        for target in self.targets:
            self.findings.setdefault(target, Finding(target, Status.FAILED, code))

    def result(self) -> Result:
        """What is known now."""
        self.settle_rest(SetupCode.OPERATION_INTERRUPTED)
        return Result(self.operation, tuple(self.findings[one] for one in self.targets), self.interrupted)

    def _intend(self) -> None:
        """What we would register. Raises `Stopped`. A removal can do without, since the record says what is ours, and
        so can an overview.
        """
        inputs = self.inputs
        try:
            configuration = str(config_path_for_operator(inputs.environ, inputs.cwd))
        except ConfigError:
            raise Stopped(SetupCode.CONFIG_REQUIRED) from None
        installation = inputs.installation(inputs.environ)
        self._intent = registration_of(shown_text(installation.executable), shown_text(_without_dots(configuration)))
        if not can_be_registered(self._intent):
            raise Stopped(SetupCode.CONFIG_REQUIRED)
        self._release = installation.release()

    @asynccontextmanager
    async def _fenced(self) -> AsyncIterator[Fence | None]:
        if self.operation in _LOOKS:
            yield None
            return
        system = self.inputs.system
        async with fence(
            self._state, system, within_s=self.inputs.deadlines.setup_lock_s, on_step=self.inputs.on_step
        ) as held:
            try:
                Ownership(self._state).sweep()
            except OwnershipUnavailable:
                raise Stopped(SetupCode.OWNERSHIP_UNAVAILABLE) from None
            yield held

    async def _one(self, target: Target, held: Fence | None) -> Finding:
        inputs = self.inputs
        runner = Guarded(held, inputs.deadlines, inputs.on_step)
        client = inputs.client(target.client, AskedFrom(inputs.environ, inputs.cwd, self._state / NEUTRAL))
        try:
            await _require_usable(client, target, runner)
            place = client.place(target)
            ownership = Ownership(self._state)
            subject = Subject(target, client, place, self._intent, self._release, ownership, runner)
            subject, scene = await subject.look()
            status, code = await self._settle(scene, subject, held)
            other = await self._other_scope(scene, subject, code)
        except CommandFailed as failed:
            raise _stopped_by(failed) from None
        except OwnershipUnavailable:
            raise Stopped(SetupCode.OWNERSHIP_UNAVAILABLE) from None
        except OSError:
            raise Stopped(SetupCode.OPERATION_FAILED) from None
        return Finding(
            target, status, code, other, configuration=scene.configuration if self.operation in _LOOKS else None
        )

    async def _other_scope(self, scene: Scene, subject: Subject, code: SetupCode) -> str | None:
        """The scope that is shown in the target's place; where the target is in order, the one that hides it."""
        if scene.other_scope is not None or self.operation not in _REGISTERING or code not in _IN_ORDER:
            return scene.other_scope
        subject.runner.doing = Doing.HIDDEN
        return await subject.client.hidden_by(subject.runner, subject.target)

    async def _settle(self, scene: Scene, subject: Subject, held: Fence | None) -> tuple[Status, SetupCode]:
        match self.operation:
            case Operation.OVERVIEW | Operation.DRY_RUN:
                settled = foresee(scene)
                return settled.status, settled.code
            case Operation.VERIFY:
                return await self._verify(scene, subject, held)
            case Operation.APPLY | Operation.REBIND | Operation.ROLLBACK | Operation.REMOVE:
                assert held is not None
                return await carry_out(_plan(self.operation, scene), scene, subject, held)
        assert_never(self.operation)

    async def _verify(self, scene: Scene, subject: Subject, held: Fence | None) -> tuple[Status, SetupCode]:
        if scene.is_disabled and scene.live == scene.intent:
            raise Stopped(SetupCode.REGISTRATION_DISABLED, Status.DIVERGENT)
        if scene.seen is not Seen.EQUIVALENT:
            raise Stopped(SetupCode.REGISTRATION_NOT_EQUIVALENT)
        await verify(
            Handshake(
                registration=subject.intent,
                environ=self.inputs.environ,
                directory=self._state / NEUTRAL,
                tools=self.inputs.tools,
                held=None if held is None else held.descriptor,
                deadlines=self.inputs.deadlines,
                on_step=self.inputs.on_step,
            )
        )
        return Status.OK, SetupCode.MCP_VERIFIED


def _without_dots(path: str) -> str:
    """The same file by a shorter path, or `path`: behind a link, `..` is not the directory that it was reached from."""
    plain = os.path.normpath(path)
    try:
        return plain if os.path.samefile(plain, path) else path
    except OSError:
        return path


def _plan(operation: Operation, scene: Scene) -> Plan:
    match operation:
        case Operation.APPLY:
            return plan_apply(scene)
        case Operation.REBIND:
            return plan_rebind(scene)
        case Operation.ROLLBACK:
            return plan_removal(scene, SetupCode.ROLLED_BACK)
        case _:
            return plan_removal(scene, SetupCode.REMOVED)


async def _require_usable(client: Client, target: Target, runner: Guarded) -> None:
    """Raise `Stopped` unless the client is there, has a home, speaks as we know it, and has this scope here."""
    if not client.home_is_usable():
        raise Stopped(SetupCode.HOME_UNAVAILABLE)
    if not client.accepts(target):
        raise Stopped(SetupCode.CLIENT_UNSUPPORTED, Status.UNSUPPORTED)
    runner.doing = Doing.DISCOVER
    match await client.discover(runner):
        case Discovery.MISSING:
            raise Stopped(SetupCode.CLIENT_MISSING)
        case Discovery.UNSUPPORTED:
            raise Stopped(SetupCode.CLIENT_UNSUPPORTED, Status.UNSUPPORTED)
        case Discovery.USABLE if not client.has_home():
            raise Stopped(SetupCode.CLIENT_HOME_MISSING)
        case Discovery.USABLE:
            return


def _stopped_by(failed: CommandFailed) -> Stopped:
    match failed.kind:
        case CommandFailure.MISSING:
            return Stopped(SetupCode.CLIENT_MISSING)
        case CommandFailure.NOT_NEUTRAL:
            if failed.mark is None:
                return Stopped(SetupCode.STATE_DIRECTORY_UNSAFE, in_the_way=NEUTRAL)
            return Stopped(SetupCode.USER_SCOPE_UNCLEAR, in_the_way=failed.mark)
        case CommandFailure.UNKNOWN_PROCESSES:
            return Stopped(SetupCode.OPERATION_FAILED)
        case CommandFailure.TIMEOUT | CommandFailure.TOO_LARGE | CommandFailure.NOT_STARTED:
            return Stopped(SetupCode.INSPECT_FAILED)
    assert_never(failed.kind)
