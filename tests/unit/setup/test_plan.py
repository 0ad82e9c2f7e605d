"""What is decided, for everything that can be there."""

from __future__ import annotations

from itertools import product

import pytest

from pi_session_mcp.setup.clients.base import Seen
from pi_session_mcp.setup.ownership import Previous, Record
from pi_session_mcp.setup.plan import Act, Do, Plan, Scene, foresee, plan_apply, plan_rebind, plan_removal
from pi_session_mcp.setup.result import Conclusion, SetupCode, Status

OURS, OLD, FOREIGN = "a" * 64, "b" * 64, "c" * 64
RELEASE, OTHER_RELEASE = "d" * 64, "e" * 64


def record(registration: str, release: str = RELEASE, *, pending: bool = False, replacing: str | None = None) -> Record:
    previous = None if replacing is None else Previous(registration=replacing, release=OTHER_RELEASE)
    return Record(
        target="codex:user:pi-session-mcp",
        place="f" * 64,
        registration=registration,
        release=release,
        previous=previous,
        phase="pending" if pending else "owned",
        transaction_id="0" * 32,
    )


RECORDS: dict[str, Record | None] = {
    "none": None,
    "ours": record(OURS),
    "ours by another release": record(OURS, OTHER_RELEASE),
    "ours, pending": record(OURS, pending=True),
    "old": record(OLD, OTHER_RELEASE),
    "old, pending": record(OLD, OTHER_RELEASE, pending=True),
    "replacing old, pending": record(OURS, pending=True, replacing=OLD),
}
LIVE: dict[str, tuple[Seen, str | None]] = {
    "absent": (Seen.ABSENT, None),
    "ours": (Seen.EQUIVALENT, OURS),
    "old": (Seen.DIVERGENT, OLD),
    "foreign": (Seen.DIVERGENT, FOREIGN),
    "unreadable part": (Seen.DIVERGENT, None),
    "unknown": (Seen.UNSUPPORTED, None),
}


def scene(live: str, recorded: str, other_scope: str | None = None) -> Scene:
    seen, fingerprint = LIVE[live]
    return Scene(seen, fingerprint, RECORDS[recorded], OURS, RELEASE, other_scope)


def told(plan: Plan) -> str:
    return f"{plan.act.name} {plan.code}" if isinstance(plan, Do) else f"{plan.status} ({plan.code})"


APPLY = {
    ("absent", "none"): "ADD applied",
    ("absent", "ours"): "ADD applied",
    ("absent", "ours, pending"): "ADD applied",
    ("absent", "old"): "ADD applied",
    ("absent", "replacing old, pending"): "ADD applied",
    ("ours", "none"): "unchanged (already_equivalent)",
    ("ours", "ours"): "unchanged (already_equivalent)",
    ("ours", "ours by another release"): "divergent (release_binding_mismatch)",
    ("ours", "ours, pending"): "OWN pending_recovered",
    ("ours", "old"): "divergent (registration_fingerprint_mismatch)",
    ("ours", "replacing old, pending"): "OWN pending_recovered",
    ("old", "none"): "divergent (divergence_requires_replacement)",
    ("old", "ours"): "divergent (divergence_requires_replacement)",
    ("old", "old"): "divergent (registration_fingerprint_mismatch)",
    ("old", "old, pending"): "REPLACE pending_recovered",
    ("old", "replacing old, pending"): "REPLACE pending_recovered",
}


@pytest.mark.parametrize(("live", "recorded"), APPLY)
def test_apply(live: str, recorded: str) -> None:
    assert told(plan_apply(scene(live, recorded))) == APPLY[live, recorded]


REMOVAL = {
    ("absent", "none"): "absent (absent)",
    ("absent", "ours"): "FORGET removed",
    ("absent", "ours, pending"): "FORGET removed",
    ("ours", "none"): "failed (ownership_unavailable)",
    ("ours", "ours"): "REMOVE removed",
    ("ours", "ours by another release"): "REMOVE removed",
    ("ours", "ours, pending"): "REMOVE removed",
    ("ours", "old"): "divergent (ownership_diverged)",
    ("old", "none"): "divergent (divergent)",
    ("old", "old"): "REMOVE removed",
    ("old", "replacing old, pending"): "REMOVE removed",
}


@pytest.mark.parametrize(("live", "recorded"), REMOVAL)
def test_removal(live: str, recorded: str) -> None:
    assert told(plan_removal(scene(live, recorded), SetupCode.REMOVED)) == REMOVAL[live, recorded]


REBIND = {
    ("absent", "none"): "failed (ownership_unavailable)",
    ("absent", "ours"): "failed (ownership_diverged)",
    ("absent", "ours, pending"): "ADD rebound",
    ("absent", "replacing old, pending"): "ADD rebound",
    ("ours", "none"): "failed (ownership_unavailable)",
    ("ours", "ours"): "unchanged (already_equivalent)",
    ("ours", "ours by another release"): "OWN rebound",
    ("ours", "ours, pending"): "OWN rebound",
    ("ours", "replacing old, pending"): "OWN rebound",
    ("ours", "old"): "divergent (ownership_diverged)",
    ("old", "none"): "failed (ownership_unavailable)",
    ("old", "old"): "REPLACE rebound",
    ("old", "replacing old, pending"): "REPLACE rebound",
    ("old", "ours"): "divergent (ownership_diverged)",
}


@pytest.mark.parametrize(("live", "recorded"), REBIND)
def test_rebind(live: str, recorded: str) -> None:
    assert told(plan_rebind(scene(live, recorded))) == REBIND[live, recorded]


DRY_RUN = {
    ("absent", "none"): "absent (absent)",
    ("absent", "ours"): "divergent (ownership_diverged)",
    ("absent", "ours, pending"): "absent (absent)",
    ("ours", "none"): "unchanged (equivalent)",
    ("ours", "ours"): "unchanged (equivalent)",
    ("ours", "ours, pending"): "unchanged (equivalent)",
    ("ours", "ours by another release"): "divergent (release_binding_mismatch)",
    ("ours", "old"): "divergent (registration_fingerprint_mismatch)",
    ("old", "old"): "divergent (registration_fingerprint_mismatch)",
    ("old", "none"): "divergent (divergent)",
}


@pytest.mark.parametrize(("live", "recorded"), DRY_RUN)
def test_dry_run(live: str, recorded: str) -> None:
    assert told(foresee(scene(live, recorded))) == DRY_RUN[live, recorded]


def plans_of(here: Scene) -> tuple[Plan, ...]:
    return plan_apply(here), plan_rebind(here), plan_removal(here, SetupCode.REMOVED)


@pytest.mark.parametrize(("live", "recorded"), [*product(("foreign", "unreadable part", "unknown"), RECORDS)])
def test_what_a_record_does_not_cover_is_never_touched(live: str, recorded: str) -> None:
    assert all(isinstance(plan, Conclusion) for plan in plans_of(scene(live, recorded)))


@pytest.mark.parametrize(("live", "recorded"), [*product(LIVE, RECORDS)])
def test_only_what_a_record_covers_is_ever_removed(live: str, recorded: str) -> None:
    here = scene(live, recorded)
    removing = [plan for plan in plans_of(here) if isinstance(plan, Do) and plan.act in {Act.REMOVE, Act.REPLACE}]
    covered = RECORDS[recorded]
    assert not removing or (covered is not None and here.live in covered.registrations)


@pytest.mark.parametrize("recorded", [name for name in RECORDS if name != "none"])
def test_what_another_scope_hides_is_not_said_to_be_changed(recorded: str) -> None:
    hidden = scene("unreadable part", recorded, other_scope="user")
    expected = Conclusion(Status.DIVERGENT, SetupCode.DIVERGENT)
    assert plan_removal(hidden, SetupCode.REMOVED) == plan_rebind(hidden) == expected
