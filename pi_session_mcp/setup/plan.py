"""From what is there to what is to be done. Pure: everything that setup decides is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

from pi_session_mcp.setup.clients.base import Seen
from pi_session_mcp.setup.result import SetupCode, Status

if TYPE_CHECKING:
    from pi_session_mcp.setup.ownership import Record
    from pi_session_mcp.setup.result import Relation


@dataclass(frozen=True, slots=True)
class Scene:
    """One target as it is: what its client shows, what we recorded, and what we would register.

    `live` is the fingerprint of what is registered, where all of it could be read. `intent` is the fingerprint of our
    registration, and `release` the hash of this installation. `other_scope` is the one that is shown instead.
    `is_disabled` says that the client would not start what is registered, and `configuration` which one it uses.
    """

    seen: Seen
    live: str | None
    record: Record | None
    intent: str
    release: str
    other_scope: str | None = None
    is_disabled: bool = False
    configuration: Relation | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the live registration is one that our record is about."""
        return self.record is not None and self.record.covers(self.live)

    @property
    def is_bound_here(self) -> bool:
        """Whether the record is about exactly this registration by exactly this installation."""
        record = self.record
        return record is not None and (record.registration, record.release) == (self.intent, self.release)


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """Nothing is to be done."""

    status: Status
    code: SetupCode


class Act(Enum):
    """What is to be done, each as one transaction."""

    ADD = auto()  # note, have it added, see that it is there, own it
    REPLACE = auto()  # note both, have the old one removed and ours added, own it
    OWN = auto()  # it is there as we want it: own it
    FORGET = auto()  # it is not there: drop the record
    REMOVE = auto()  # have it removed, see that it is gone, drop the record


@dataclass(frozen=True, slots=True)
class Do:
    """`act`, and when all of it was seen to be done, that is `ok` with `code`."""

    act: Act
    code: SetupCode


Plan: TypeAlias = NothingToDo | Do

_UNREADABLE = NothingToDo(Status.UNSUPPORTED, SetupCode.INSPECT_FAILED)
_MOVED = NothingToDo(Status.DIVERGENT, SetupCode.REGISTRATION_FINGERPRINT_MISMATCH)
_REBUILT = NothingToDo(Status.DIVERGENT, SetupCode.RELEASE_BINDING_MISMATCH)
_UNCHANGED = NothingToDo(Status.UNCHANGED, SetupCode.ALREADY_EQUIVALENT)
_DISABLED = NothingToDo(Status.DIVERGENT, SetupCode.REGISTRATION_DISABLED)
_NOT_OWNED = NothingToDo(Status.FAILED, SetupCode.OWNERSHIP_UNAVAILABLE)


def foresee(scene: Scene) -> NothingToDo:
    """What a dry run says about the target."""
    match scene.seen:
        case Seen.UNSUPPORTED:
            return _UNREADABLE
        case Seen.ABSENT:
            if scene.record is not None and not scene.record.is_pending:
                return NothingToDo(Status.DIVERGENT, SetupCode.OWNERSHIP_DIVERGED)
            return NothingToDo(Status.ABSENT, SetupCode.ABSENT)
        case Seen.EQUIVALENT:
            return _against_record(scene) or NothingToDo(Status.UNCHANGED, SetupCode.EQUIVALENT)
        case Seen.DIVERGENT if _is_only_disabled(scene):
            return _against_record(scene) or _DISABLED
        case Seen.DIVERGENT:
            return _MOVED if scene.is_ours else NothingToDo(Status.DIVERGENT, SetupCode.DIVERGENT)


def plan_apply(scene: Scene) -> Plan:
    """Have it registered, and never in the place of what is not ours."""
    match scene.seen:
        case Seen.UNSUPPORTED:
            return _UNREADABLE
        case Seen.ABSENT:
            return Do(Act.ADD, SetupCode.APPLIED)
        case Seen.EQUIVALENT:
            if scene.record is not None and scene.record.is_pending and scene.is_ours:
                return Do(Act.OWN, SetupCode.PENDING_RECOVERED)
            return _against_record(scene) or _UNCHANGED
        case Seen.DIVERGENT if _is_only_disabled(scene):
            if scene.record is not None and scene.record.is_pending and scene.is_ours:
                return Do(Act.OWN, SetupCode.PENDING_RECOVERED)
            return _against_record(scene) or _DISABLED
        case Seen.DIVERGENT:
            if not scene.is_ours:
                return NothingToDo(Status.DIVERGENT, SetupCode.DIVERGENCE_REQUIRES_REPLACEMENT)
            if scene.record is not None and scene.record.is_pending:
                # A replacement of ours by ours was begun; to finish it is what brings the two together.
                return Do(Act.REPLACE, SetupCode.PENDING_RECOVERED)
            return _MOVED


def plan_removal(scene: Scene, done: SetupCode) -> Plan:
    """Have it removed, if it is ours; `done` is `removed` or `rolled_back`. What runs this matters not."""
    if scene.seen is Seen.UNSUPPORTED:
        return _UNREADABLE
    if scene.record is None:
        return _removal_without_record(scene.seen)
    if scene.seen is Seen.ABSENT:
        return Do(Act.FORGET, done)
    return Do(Act.REMOVE, done) if scene.is_ours else _not_as_recorded(scene)


def plan_rebind(scene: Scene) -> Plan:
    """Bind what we own to this installation and its path. A transaction that did not end is ended by it as well."""
    if scene.seen is Seen.UNSUPPORTED:
        return _UNREADABLE
    if scene.record is None:
        return _NOT_OWNED
    if scene.seen is Seen.ABSENT:
        if scene.record.is_pending:
            return Do(Act.ADD, SetupCode.REBOUND)
        return NothingToDo(Status.FAILED, SetupCode.OWNERSHIP_DIVERGED)
    if not scene.is_ours:
        return _not_as_recorded(scene)
    if scene.live != scene.intent:
        return Do(Act.REPLACE, SetupCode.REBOUND)
    if scene.is_bound_here and not scene.record.is_pending:
        return _UNCHANGED
    return Do(Act.OWN, SetupCode.REBOUND)


def _is_only_disabled(scene: Scene) -> bool:
    return scene.is_disabled and scene.live == scene.intent


def _not_as_recorded(scene: Scene) -> NothingToDo:
    """Somebody changed what we own; or another scope hides it, and then nobody can tell."""
    changed = scene.other_scope is None
    return NothingToDo(Status.DIVERGENT, SetupCode.OWNERSHIP_DIVERGED if changed else SetupCode.DIVERGENT)


def _removal_without_record(seen: Seen) -> NothingToDo:
    match seen:
        case Seen.ABSENT:
            return NothingToDo(Status.ABSENT, SetupCode.ABSENT)
        case Seen.EQUIVALENT:
            return _NOT_OWNED
        case _:
            return NothingToDo(Status.DIVERGENT, SetupCode.DIVERGENT)


def _against_record(scene: Scene) -> NothingToDo | None:
    """What keeps a registration that is as we want it from being in order; nothing if nobody recorded it."""
    if scene.record is None or scene.is_bound_here:
        return None
    if scene.record.is_pending and scene.is_ours:
        return None
    return _REBUILT if scene.record.registration == scene.intent else _MOVED
