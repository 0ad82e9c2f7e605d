"""One run of setup: everything that can refuse first, then the fence, then one target after the other."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
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
from pi_session_mcp.setup.result import Conclusion, Finding, Operation, Result, SetupCode, Status, Stopped
from pi_session_mcp.setup.state_directory import NEUTRAL, make_state_directory, require_locks, require_safe
from pi_session_mcp.setup.steps import Doing
from pi_session_mcp.setup.transaction import Subject, carry_out
from pi_session_mcp.setup.verify import Handshake, verify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from pi_session_mcp.setup.clients.base import Client
    from pi_session_mcp.setup.fence import Fence
    from pi_session_mcp.setup.inputs import SetupInputs
    from pi_session_mcp.setup.plan import Plan, Scene
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target

_NEED_NO_INTENT: Final = frozenset({Operation.OVERVIEW, Operation.ROLLBACK, Operation.REMOVE})
_LOOKS: Final = frozenset({Operation.OVERVIEW, Operation.DRY_RUN})
_TURNS_OF_A_SIGNAL: Final = 5
"""A signal that came at the last moment needs so many turns of the event loop to be noticed, and must count."""
_REGISTERING: Final = frozenset({Operation.DRY_RUN, Operation.APPLY})
_IN_ORDER: Final = frozenset({SetupCode.ABSENT, SetupCode.EQUIVALENT, SetupCode.ALREADY_EQUIVALENT, SetupCode.APPLIED})
_NOWHERE: Final = "0" * 64
"""In place of the release and the paths, when an operation registers nothing."""


def run(operation: Operation, targets: Iterable[Target], inputs: SetupInputs) -> Result:
    """Do `operation` for each target once, in order. Never raises `Stopped`.

    SIGINT and SIGTERM end what runs, and the result tells so. The next run finishes what was under way.
    """
    course = Course(operation, tuple(dict.fromkeys(targets)))
    try:
        prepared = prepare(operation, inputs)
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            anyio.run(_until_signalled, course, prepared)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    except Stopped as stopped:
        course.settle_rest(stopped.code)
    except OSError:
        course.settle_rest(SetupCode.OPERATION_FAILED)
    return course.result()


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is known before any client runs: setup's directory, what would be registered, and by which installation.

    An operation that registers nothing can do without the last two, since the records say what is ours.
    """

    operation: Operation
    inputs: SetupInputs
    state: Path
    intent: Registration
    release: str


def prepare(operation: Operation, inputs: SetupInputs) -> Prepared:
    """Do everything that needs no client. Raises `Stopped`; then nothing was written and no client has run."""
    if not inputs.system.is_supported:
        raise Stopped(SetupCode.PLATFORM_UNSUPPORTED)
    state = inputs.state(inputs.environ)
    intent, release = registration_of(_NOWHERE, _NOWHERE), _NOWHERE
    if operation in _NEED_NO_INTENT:
        with suppress(Stopped):
            intent, release = _intended(inputs)
    else:
        intent, release = _intended(inputs)
        if not inputs.doctor_is_clean():
            raise Stopped(SetupCode.DOCTOR_FAILED)
    if operation in _LOOKS:
        require_safe(state)  # nothing is written, so no directory is made
    else:
        require_locks(state, inputs.system)
        make_state_directory(state)
        require_locks(state, inputs.system)
    return Prepared(operation, inputs, state, intent, release)


def _intended(inputs: SetupInputs) -> tuple[Registration, str]:
    """What we would register, and the hash of this installation. Raises `Stopped`."""
    try:
        configuration = str(config_path_for_operator(inputs.environ, inputs.cwd))
    except ConfigError:
        raise Stopped(SetupCode.CONFIG_REQUIRED) from None
    installation = inputs.installation(inputs.environ)
    intent = registration_of(shown_text(installation.executable), shown_text(_without_dots(configuration)))
    if not can_be_registered(intent):
        raise Stopped(SetupCode.CONFIG_REQUIRED)
    return intent, installation.release()


async def _until_signalled(course: Course, prepared: Prepared) -> None:
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
                await course.run(prepared)
            except Stopped as stopped:
                course.settle_rest(stopped.code)
            except OSError:  # for example, this process has no descriptors left
                course.settle_rest(SetupCode.OPERATION_FAILED)
            for _ in range(_TURNS_OF_A_SIGNAL):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()


@dataclass(slots=True)
class Course:
    """What a run has found so far, and the signal that ended it."""

    operation: Operation
    targets: tuple[Target, ...]
    findings: dict[Target, Finding] = field(default_factory=dict)
    interrupted: ExitStatus | None = None

    async def run(self, prepared: Prepared) -> None:
        """Settle every target in order. Raises `Stopped` when none of them can go on."""
        async with _fenced(prepared) as held:
            for target in self.targets:
                try:
                    self.findings[target] = await _Settling(prepared, target, held).run()
                except Stopped as stopped:
                    self.findings[target] = Finding(target, self._concluded(stopped), in_the_way=stopped.in_the_way)

    def _concluded(self, stopped: Stopped) -> Conclusion:
        """In an overview, nothing is registered in a client that is not installed."""
        if self.operation is Operation.OVERVIEW and stopped.code is SetupCode.CLIENT_MISSING:
            return Conclusion(Status.ABSENT, stopped.code)
        return stopped.conclusion

    def settle_rest(self, code: SetupCode) -> None:
        """Conclude with `code` for every target that has no finding."""
        for target in self.targets:
            self.findings.setdefault(target, Finding(target, Conclusion(Status.FAILED, code)))

    def result(self) -> Result:
        """What is known now."""
        self.settle_rest(SetupCode.OPERATION_INTERRUPTED)
        return Result(self.operation, tuple(self.findings[one] for one in self.targets), self.interrupted)


@asynccontextmanager
async def _fenced(prepared: Prepared) -> AsyncIterator[Fence | None]:
    if prepared.operation in _LOOKS:
        yield None
        return
    inputs = prepared.inputs
    async with fence(
        prepared.state, inputs.system, within_s=inputs.deadlines.setup_lock_s, on_step=inputs.on_step
    ) as held:
        try:
            Ownership(prepared.state).sweep()
        except OwnershipUnavailable:
            raise Stopped(SetupCode.OWNERSHIP_UNAVAILABLE) from None
        yield held


@dataclass(frozen=True, slots=True)
class _Settling:
    """The operation for one target."""

    prepared: Prepared
    target: Target
    held: Fence | None

    async def run(self) -> Finding:
        """Raises `Stopped`."""
        prepared, target, inputs = self.prepared, self.target, self.prepared.inputs
        runner = Guarded(self.held, inputs.deadlines, inputs.on_step)
        client = inputs.client(target.client, AskedFrom(inputs.environ, inputs.cwd, prepared.state / NEUTRAL))
        try:
            await _require_usable(client, target, runner)
            ownership, place = Ownership(prepared.state), client.place(target)
            subject = Subject(target, client, place, prepared.intent, prepared.release, ownership, runner)
            subject, scene = await subject.look()
            conclusion = await self._settle(scene, subject)
            other = await self._other_scope(scene, subject, conclusion.code)
        except CommandFailed as failed:
            raise _stopped_by(failed) from None
        except OwnershipUnavailable:
            raise Stopped(SetupCode.OWNERSHIP_UNAVAILABLE) from None
        except OSError:
            raise Stopped(SetupCode.OPERATION_FAILED) from None
        configuration = scene.configuration if prepared.operation in _LOOKS else None
        return Finding(target, conclusion, other, configuration=configuration)

    async def _other_scope(self, scene: Scene, subject: Subject, code: SetupCode) -> str | None:
        """The scope that is shown in place of the target, or that hides the target when it is in order."""
        if scene.other_scope is not None or self.prepared.operation not in _REGISTERING or code not in _IN_ORDER:
            return scene.other_scope
        return await subject.client.hidden_by(subject.runner.at(Doing.HIDDEN), subject.target)

    async def _settle(self, scene: Scene, subject: Subject) -> Conclusion:
        match operation := self.prepared.operation:
            case Operation.OVERVIEW | Operation.DRY_RUN:
                return foresee(scene)
            case Operation.VERIFY:
                return await self._verify(scene, subject)
            case Operation.APPLY | Operation.REBIND | Operation.ROLLBACK | Operation.REMOVE:
                assert self.held is not None
                return await carry_out(_plan(operation, scene), scene, subject, self.held)
        assert_never(operation)

    async def _verify(self, scene: Scene, subject: Subject) -> Conclusion:
        if scene.is_disabled and scene.live == scene.intent:
            raise Stopped(SetupCode.REGISTRATION_DISABLED, Status.DIVERGENT)
        if scene.seen is not Seen.EQUIVALENT:
            raise Stopped(SetupCode.REGISTRATION_NOT_EQUIVALENT)
        inputs = self.prepared.inputs
        await verify(
            Handshake(
                registration=subject.intent,
                environ=inputs.environ,
                directory=self.prepared.state / NEUTRAL,
                tools=inputs.tools,
                held=None if self.held is None else self.held.descriptor,
                deadlines=inputs.deadlines,
                on_step=inputs.on_step,
            )
        )
        return Conclusion(Status.OK, SetupCode.MCP_VERIFIED)


def _without_dots(path: str) -> str:
    """A path to the same file without `..`, or `path`: after a link, `..` leads somewhere else."""
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
    """Raise `Stopped` unless the client is installed, has a home, is one that we know, and has this scope here."""
    if not client.home_is_usable():
        raise Stopped(SetupCode.HOME_UNAVAILABLE)
    if not client.accepts(target):
        raise Stopped(SetupCode.CLIENT_UNSUPPORTED, Status.UNSUPPORTED)
    match await client.discover(runner.at(Doing.DISCOVER)):
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
