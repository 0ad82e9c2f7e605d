"""Changes a client and the records, in the one order that survives being killed anywhere.

Before a client is told to change anything, a record says `pending` and what is to be there. Only after an inspection
has shown the change, the record says `owned` or is dropped. So at every moment the records cover all of ours that can
be registered, and the next run finishes what it finds (see `plan`). The fence is held throughout.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from pi_session_mcp.setup.clients.base import CommandFailed, CommandFailure, Seen
from pi_session_mcp.setup.ownership import Book, OwnershipUnavailable, Previous, Record
from pi_session_mcp.setup.plan import Act, Scene
from pi_session_mcp.setup.result import Conclusion, Relation, SetupCode, Status
from pi_session_mcp.setup.same import is_same_place, leads_to_the_same
from pi_session_mcp.setup.steps import Doing
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from pi_session_mcp.setup.clients.base import Client, Inspection, Settings
    from pi_session_mcp.setup.fence import Fence
    from pi_session_mcp.setup.guardian import Guarded
    from pi_session_mcp.setup.ownership import Ownership
    from pi_session_mcp.setup.plan import Plan
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target


@dataclass(frozen=True, slots=True)
class Subject:
    """One target with everything that is needed to look at it. `settings` are those that were seen there."""

    target: Target
    client: Client
    place: str
    intent: Registration
    release: str
    ownership: Ownership
    runner: Guarded
    settings: Settings = field(default_factory=dict)

    async def inspect(self, doing: Doing) -> Inspection:
        """What the client shows now. Raises `CommandFailed`."""
        return await self.client.inspect(self.runner.at(doing), self.target, self.intent)

    async def look(self) -> tuple[Subject, Scene]:
        """The target as it is, and what is wanted there. Raises `CommandFailed` or `OwnershipUnavailable`.

        A registration that leads to the same files by other paths, such as a link that is not on this shell's `PATH`,
        counts as what is wanted. So it is kept and not replaced.
        """
        record = self.ownership.read().find(self.target, self.place)
        inspection = await self.inspect(Doing.INSPECT)
        intent, shown, seen = self.intent, inspection.registration, inspection.seen
        if seen is Seen.DIVERGENT and shown is not None and leads_to_the_same(shown, intent):
            intent, seen = shown, seen if inspection.is_disabled else Seen.EQUIVALENT
        live = intent.fingerprint() if seen is Seen.EQUIVALENT else _fingerprint(inspection)
        scene = Scene(
            seen,
            live,
            record,
            intent.fingerprint(),
            self.release,
            inspection.other_scope,
            is_disabled=inspection.is_disabled,
            configuration=_relation(shown, self.intent),
        )
        return replace(self, intent=intent, settings=inspection.settings), scene


def _relation(shown: Registration | None, intent: Registration) -> Relation | None:
    named = None if shown is None else shown.environment.get(VARIABLE)
    if named is None:
        return None
    return Relation.SAME if is_same_place(named, intent.environment[VARIABLE]) else Relation.ANOTHER


def _fingerprint(inspection: Inspection) -> str | None:
    return None if inspection.registration is None else inspection.registration.fingerprint()


async def carry_out(plan: Plan, scene: Scene, subject: Subject, fence: Fence) -> Conclusion:
    """Do what `plan` says. Raises `Stopped` when nothing could be begun."""
    if isinstance(plan, Conclusion):
        return plan
    fence.require_sound()
    transaction = _Transaction(subject, scene)
    try:
        await transaction.run(plan.act)
    except OwnershipUnavailable:
        return Conclusion(Status.FAILED, transaction.failure or SetupCode.OWNERSHIP_UNAVAILABLE)
    except _WouldLose:
        return Conclusion(Status.DIVERGENT, SetupCode.SETTINGS_WOULD_BE_LOST)
    except (CommandFailed, _NotSeen, OSError):
        return Conclusion(Status.FAILED, transaction.failure or SetupCode.OPERATION_FAILED)
    return Conclusion(Status.OK, plan.code)


class _NotSeen(Exception):  # noqa: N818 - an expected answer of the world
    """The client does not show the change."""


class _WouldLose(Exception):  # noqa: N818 - an expected answer of the world
    """The registration has settings that could not be made again. Nothing was changed."""


class _Transaction:
    """One act. `failure` is the code if it ends now; `None` as long as nothing was changed."""

    def __init__(self, subject: Subject, scene: Scene) -> None:
        self._subject = subject
        self._scene = scene
        self.failure: SetupCode | None = None

    async def run(self, act: Act) -> None:
        """Raises `OwnershipUnavailable`, `CommandFailed`, `_NotSeen` or `_WouldLose`."""
        match act:
            case Act.ADD:
                await self._add(self._note(previous=None))
            case Act.REPLACE:
                await self._replace()
            case Act.OWN:
                self._write(Doing.OWNED, self._book().having(self._record("owned", previous=None)))
            case Act.FORGET:
                self._forget()
            case Act.REMOVE:
                self.failure = SetupCode.CLEANUP_FAILED
                await self._remove()
                self._forget()
            case _:
                assert_never(act)

    async def _replace(self) -> None:
        scene = self._scene
        assert scene.live is not None
        assert scene.record is not None
        pending = self._note(Previous(registration=scene.live, release=_release_of(scene.record, scene.live)))
        if await self._change():
            self._own(pending)
            return
        if not self._subject.client.can_add(self._subject.settings):
            self._write(Doing.OWNED, self._book().having(scene.record))
            raise _WouldLose
        await self._remove()
        await self._add(pending)

    async def _change(self) -> bool:
        """Have it changed in its place. `False` when it is certainly as it was."""
        subject = self._subject
        runner = subject.runner.at(Doing.CHANGE)
        try:
            if not await subject.client.change(runner, subject.target, subject.intent):
                return False
        except CommandFailed as failed:
            if failed.kind is CommandFailure.UNKNOWN_PROCESSES:
                raise
        inspection = await subject.inspect(Doing.CONFIRM_CHANGE)
        if not self._is_there(inspection) and _fingerprint(inspection) != self._scene.live:
            raise _NotSeen
        return self._is_there(inspection)

    async def _add(self, pending: Record) -> None:
        subject = self._subject
        await subject.client.add(subject.runner.at(Doing.ADD), subject.target, subject.intent, subject.settings)
        if not self._is_there(await subject.inspect(Doing.CONFIRM)):
            raise _NotSeen
        self._own(pending)

    def _own(self, pending: Record) -> None:
        owned = pending.model_copy(update={"phase": "owned", "previous": None})
        self._write(Doing.OWNED, self._book().having(owned))

    def _is_there(self, inspection: Inspection) -> bool:
        """Whether what is wanted is registered. That a command reports success proves nothing."""
        is_disabled = inspection.is_disabled and inspection.registration == self._subject.intent
        return inspection.seen is Seen.EQUIVALENT or is_disabled

    async def _remove(self) -> None:
        subject = self._subject
        await subject.client.remove(subject.runner.at(Doing.REMOVE), subject.target)
        if (await subject.inspect(Doing.CONFIRM_ABSENT)).seen is not Seen.ABSENT:
            raise _NotSeen

    def _note(self, previous: Previous | None) -> Record:
        """Record durably what is about to be changed."""
        pending = self._record("pending", previous)
        self._write(Doing.PENDING, self._book().having(pending))
        self.failure = SetupCode.APPLY_FAILED_RECOVERY_PENDING
        return pending

    def _forget(self) -> None:
        self._write(Doing.FORGET, self._book().without(self._subject.target, self._subject.place))

    def _record(self, phase: str, previous: Previous | None) -> Record:
        return Record(
            target=str(self._subject.target),
            place=self._subject.place,
            registration=self._scene.intent,
            release=self._subject.release,
            previous=previous,
            phase="pending" if phase == "pending" else "owned",
            transaction_id=uuid.uuid4().hex,
        )

    def _book(self) -> Book:
        return self._subject.ownership.read()

    def _write(self, doing: Doing, book: Book) -> None:
        on_step = self._subject.runner.on_step
        on_step(doing.at("starting"), None)
        self._subject.ownership.write(book, staged=lambda: on_step(doing.at("staged"), None))
        on_step(doing.at("done"), None)


def _release_of(record: Record, live: str) -> str:
    """The hash of the installation that registered what is live."""
    replaced = record.previous
    return record.release if replaced is None or live == record.registration else replaced.release
