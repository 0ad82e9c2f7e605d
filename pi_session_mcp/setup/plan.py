"""Decides from what is there what is to be done. Setup decides everything here. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

from pi_session_mcp.setup.clients.base import Seen
from pi_session_mcp.setup.result import Conclusion, SetupCode, Status

if TYPE_CHECKING:
    from pi_session_mcp.setup.ownership import Record
    from pi_session_mcp.setup.result import Relation


@dataclass(frozen=True, slots=True)
class Scene:
    """One target as it is: what its client shows, what our record says, and what we would register.

    `live` is the fingerprint of what is registered, if all of it could be read. `intent` is the fingerprint of our
    registration, and `release` the hash of this installation. `other_scope` is the scope that is shown instead.
    `is_disabled` says that the client would not start what is registered. `configuration` says which configuration it
    uses.
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
        """Whether our record proves that the live registration is ours."""
        return self.record is not None and self.record.covers(self.live)

    @property
    def is_bound_here(self) -> bool:
        """Whether the record is about this very registration, made by this very installation."""
        record = self.record
        return record is not None and (record.registration, record.release) == (self.intent, self.release)


class Act(Enum):
    """What is to be done, each as one transaction."""

    ADD = auto()  # record it as pending, have it added, see it there, record it as owned
    REPLACE = auto()  # record both, have the old one removed and ours added, record it as owned
    OWN = auto()  # it is there as it should be: record it as owned
    FORGET = auto()  # it is not there: drop the record
    REMOVE = auto()  # have it removed, see that it is gone, drop the record


@dataclass(frozen=True, slots=True)
class Do:
    """Do `act`. When all of it was seen to be done, the conclusion is `ok` with `code`."""

    act: Act
    code: SetupCode


Plan: TypeAlias = Conclusion | Do
"""A conclusion when nothing is to be done."""

_UNREADABLE = Conclusion(Status.UNSUPPORTED, SetupCode.INSPECT_FAILED)
_MOVED = Conclusion(Status.DIVERGENT, SetupCode.REGISTRATION_FINGERPRINT_MISMATCH)
_REBUILT = Conclusion(Status.DIVERGENT, SetupCode.RELEASE_BINDING_MISMATCH)
_UNCHANGED = Conclusion(Status.UNCHANGED, SetupCode.ALREADY_EQUIVALENT)
_DISABLED = Conclusion(Status.DIVERGENT, SetupCode.REGISTRATION_DISABLED)
_NOT_OWNED = Conclusion(Status.FAILED, SetupCode.OWNERSHIP_UNAVAILABLE)


def foresee(scene: Scene) -> Conclusion:
    """The conclusion of a dry run about the target."""
    match scene.seen:
        case Seen.UNSUPPORTED:
            return _UNREADABLE
        case Seen.ABSENT:
            if scene.record is not None and not scene.record.is_pending:
                return Conclusion(Status.DIVERGENT, SetupCode.OWNERSHIP_DIVERGED)
            return Conclusion(Status.ABSENT, SetupCode.ABSENT)
        case Seen.EQUIVALENT:
            return _against_record(scene) or Conclusion(Status.UNCHANGED, SetupCode.EQUIVALENT)
        case Seen.DIVERGENT if _is_only_disabled(scene):
            return _against_record(scene) or _DISABLED
        case Seen.DIVERGENT:
            return _MOVED if scene.is_ours else Conclusion(Status.DIVERGENT, SetupCode.DIVERGENT)


def plan_apply(scene: Scene) -> Plan:
    """Have it registered, but never in place of a registration that is not ours."""
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
                return Conclusion(Status.DIVERGENT, SetupCode.DIVERGENCE_REQUIRES_REPLACEMENT)
            if scene.record is not None and scene.record.is_pending:
                # A replacement of ours by ours was begun, so it is finished.
                return Do(Act.REPLACE, SetupCode.PENDING_RECOVERED)
            return _MOVED


def plan_removal(scene: Scene, done: SetupCode) -> Plan:
    """Have it removed, if it is ours. `done` is `removed` or `rolled_back`. Any installation may do that."""
    if scene.seen is Seen.UNSUPPORTED:
        return _UNREADABLE
    if scene.record is None:
        return _removal_without_record(scene.seen)
    if scene.seen is Seen.ABSENT:
        return Do(Act.FORGET, done)
    return Do(Act.REMOVE, done) if scene.is_ours else _not_as_recorded(scene)


def plan_rebind(scene: Scene) -> Plan:
    """Bind what we own to this installation and its path. This also finishes a transaction that did not end."""
    if scene.seen is Seen.UNSUPPORTED:
        return _UNREADABLE
    if scene.record is None:
        return _NOT_OWNED
    if scene.seen is Seen.ABSENT:
        if scene.record.is_pending:
            return Do(Act.ADD, SetupCode.REBOUND)
        return Conclusion(Status.FAILED, SetupCode.OWNERSHIP_DIVERGED)
    if not scene.is_ours:
        return _not_as_recorded(scene)
    if scene.live != scene.intent:
        return Do(Act.REPLACE, SetupCode.REBOUND)
    if scene.is_bound_here and not scene.record.is_pending:
        return _UNCHANGED
    return Do(Act.OWN, SetupCode.REBOUND)


def _is_only_disabled(scene: Scene) -> bool:
    return scene.is_disabled and scene.live == scene.intent


def _not_as_recorded(scene: Scene) -> Conclusion:
    """What we own was changed. If another scope hides it, that cannot be known."""
    changed = scene.other_scope is None
    return Conclusion(Status.DIVERGENT, SetupCode.OWNERSHIP_DIVERGED if changed else SetupCode.DIVERGENT)


def _removal_without_record(seen: Seen) -> Conclusion:
    match seen:
        case Seen.ABSENT:
            return Conclusion(Status.ABSENT, SetupCode.ABSENT)
        case Seen.EQUIVALENT:
            return _NOT_OWNED
        case _:
            return Conclusion(Status.DIVERGENT, SetupCode.DIVERGENT)


def _against_record(scene: Scene) -> Conclusion | None:
    """Why a registration that is as it should be does not agree with its record. `None` if it agrees, or has none."""
    if scene.record is None or scene.is_bound_here:
        return None
    if scene.record.is_pending and scene.is_ours:
        return None
    return _REBUILT if scene.record.registration == scene.intent else _MOVED
