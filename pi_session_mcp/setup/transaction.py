"""What changes a client or a record, in the one order that survives being killed anywhere.

Before a client is told to change anything, the record says `pending` and what for; it says `owned`, or goes, only after
an inspection has shown that the change is there. So at every instant the record covers whatever of ours can be live,
and the next run finishes what it finds (see `plan`). The fence is held throughout.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from pi_session_mcp.setup.clients.base import CommandFailed, Seen
from pi_session_mcp.setup.ownership import Book, OwnershipUnavailable, Previous, Record
from pi_session_mcp.setup.plan import Act, Do, Scene, Settled
from pi_session_mcp.setup.result import SetupCode, Status
from pi_session_mcp.setup.steps import Doing

if TYPE_CHECKING:
    from pi_session_mcp.setup.clients.base import Client, Inspection
    from pi_session_mcp.setup.fence import Fence
    from pi_session_mcp.setup.guardian import Guarded
    from pi_session_mcp.setup.ownership import Ownership
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target


@dataclass(frozen=True, slots=True)
class Subject:
    """One target with all that it takes to look at it."""

    target: Target
    client: Client
    place: str
    intent: Registration
    release: str
    ownership: Ownership
    runner: Guarded

    async def inspect(self, doing: Doing) -> Inspection:
        """What the client shows now. Raises `CommandFailed`."""
        self.runner.doing = doing
        return await self.client.inspect(self.runner, self.target, self.intent)

    async def look(self) -> Scene:
        """The target as it is. Raises `CommandFailed` or `OwnershipUnavailable`."""
        record = self.ownership.read().find(self.target, self.place)
        inspection = await self.inspect(Doing.INSPECT)
        intent = self.intent.fingerprint()
        live = intent if inspection.seen is Seen.EQUIVALENT else _fingerprint(inspection)
        return Scene(inspection.seen, live, record, intent, self.release, inspection.other_scope)


def _fingerprint(inspection: Inspection) -> str | None:
    return None if inspection.registration is None else inspection.registration.fingerprint()


async def carry_out(plan: Settled | Do, scene: Scene, subject: Subject, fence: Fence) -> tuple[Status, SetupCode]:
    """Do what `plan` says; what came of it. Raises `Stopped` when nothing could be begun."""
    if isinstance(plan, Settled):
        return plan.status, plan.code
    fence.require_sound()
    transaction = _Transaction(subject, scene)
    try:
        await transaction.run(plan.act)
    except OwnershipUnavailable:
        code = transaction.failure or SetupCode.OWNERSHIP_UNAVAILABLE
        return Status.FAILED, code
    except (CommandFailed, _NotSeen, OSError):
        return Status.FAILED, transaction.failure or SetupCode.OPERATION_FAILED
    return Status.OK, plan.code


class _NotSeen(Exception):  # noqa: N818 - an expected answer of the world
    """The client says something else than that the change is there."""


class _Transaction:
    """One act. `failure` is what it means if it ends here; `None` as long as nothing was changed."""

    def __init__(self, subject: Subject, scene: Scene) -> None:
        self._subject = subject
        self._scene = scene
        self.failure: SetupCode | None = None

    async def run(self, act: Act) -> None:
        """Raises `OwnershipUnavailable`, `CommandFailed` or `_NotSeen`."""
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
        await self._remove()
        await self._add(pending)

    async def _add(self, pending: Record) -> None:
        subject = self._subject
        subject.runner.doing = Doing.ADD
        await subject.client.add(subject.runner, subject.target, subject.intent)
        await self._confirm(Doing.CONFIRM, Seen.EQUIVALENT)
        owned = pending.model_copy(update={"phase": "owned", "previous": None})
        self._write(Doing.OWNED, self._book().having(owned))

    async def _remove(self) -> None:
        subject = self._subject
        subject.runner.doing = Doing.REMOVE
        await subject.client.remove(subject.runner, subject.target)
        await self._confirm(Doing.CONFIRM_ABSENT, Seen.ABSENT)

    async def _confirm(self, doing: Doing, wanted: Seen) -> None:
        """What a command says about its success proves nothing; what the client shows afterwards does."""
        if (await self._subject.inspect(doing)).seen is not wanted:
            raise _NotSeen

    def _note(self, previous: Previous | None) -> Record:
        """Say durably what is about to be changed."""
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
    """Which installation registered what is live."""
    replaced = record.previous
    return record.release if replaced is None or live == record.registration else replaced.release
