"""Setup may be killed anywhere: the next apply finishes, the next remove removes, and nothing else was touched.

Every case is an operation, a step of it, and a victim. `-m matrix` runs those that the plain run leaves out. In the
plain run the next remove is seen once: each case ends with what an undisturbed apply leaves, and that is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.setup_templates import Templates
    from tests.support.setup_worlds import Operator

COMMAND: Final = ("starting", "running", "done")
RECORD: Final = ("starting", "staged", "done")


def steps_of(*stretches: str) -> list[str]:
    """The steps of an operation that does `stretches` inside the fence."""
    moments = {"pending": RECORD, "owned": RECORD, "forget": RECORD}
    inside = [f"{one}.{moment}" for one in stretches for moment in moments.get(one, COMMAND)]
    return ["fence.wanted", "fence.held", *inside, "fence.leaving"]


REMOVAL: Final = steps_of("discover", "inspect", "remove", "confirm_absent", "forget")
STEPS: Final = {
    "apply": steps_of("discover", "inspect", "pending", "add", "confirm", "owned", "hidden"),
    "rebind": steps_of("discover", "inspect", "pending", "remove", "confirm_absent", "add", "confirm", "owned"),
    "rollback": REMOVAL,
    "remove": REMOVAL,
}
SIGNALS: Final = {"SIGINT": 130, "SIGTERM": 143}
VICTIMS: Final = ("command", "guardian", "both", "client", *SIGNALS)
ELSEWHERE: Final = frozenset(
    {
        "apply-fence.held-SIGTERM",
        "remove-discover.running-guardian",
        "rollback-inspect.running-command",
        "apply-confirm.running-both",
        "rollback-confirm_absent.running-client",
        "apply-hidden.running-client",
        "rebind-fence.leaving-SIGINT",
    }
)
"""Of the steps that change nothing, one of each kind."""


@dataclass(frozen=True, slots=True)
class Case:
    """One way to be killed. `held` says how far the client has come in its own work: `before` or `after` its change."""

    operation: str
    step: str
    victim: str
    held: str | None = None

    def __str__(self) -> str:
        return "-".join(filter(None, (self.operation, self.step, self.victim, self.held)))

    @property
    def verb(self) -> str:
        """What the client is doing."""
        return self.step.split(".")[0]

    @property
    def is_telling(self) -> bool:
        """Whether the plain run of the tests includes it: where something changes, and one of each kind elsewhere."""
        return self._is_a_change_killed or self._is_in_mid_work or str(self) in ELSEWHERE

    @property
    def _is_a_change_killed(self) -> bool:
        """The command is killed before and after each change that apply and remove make; in mid-work, see below."""
        changes = self.verb in {"add", "remove", "pending", "owned", "forget"} and not self.step.endswith(".running")
        return changes and self.victim == "command" and self.held is None and self.operation in {"apply", "remove"}

    @property
    def _is_in_mid_work(self) -> bool:
        """Each victim before and after a change of the client, one of them as it adds and the other as it removes."""
        adds_first = VICTIMS.index(self.victim) % 2 == 0
        return (
            self.operation == "rebind"
            and self.held is not None
            and (self.verb == "add") == ((self.held == "before") == adds_first)
        )


def cases() -> Iterator[Case]:
    """Every case."""
    for operation, steps in STEPS.items():
        for step in steps:
            running = step.endswith(".running")
            victims = VICTIMS if running else ("command", *SIGNALS)
            for victim in victims:
                yield Case(operation, step, victim)
                if step in {"add.running", "remove.running"}:
                    yield Case(operation, step, victim, "before")
                    yield Case(operation, step, victim, "after")


def marked(case: Case) -> object:
    return pytest.param(case, id=str(case), marks=() if case.is_telling else pytest.mark.matrix)


@pytest.fixture(scope="module")
def undisturbed(templates: Templates) -> dict[str, dict[str, object]]:
    """What an apply that nobody disturbs leaves, for each of the installations: a remove removes just this."""
    left = {}
    for installation in ("first", "second"):
        operator = templates.operator(applied=False)
        operator.installation = installation
        assert operator.code("apply") == "applied"
        left[installation] = left_by(operator)
        assert_remove_removes(operator)
    return left


def left_by(operator: Operator) -> dict[str, object]:
    """Everything in the home but the stubs' own notes; only the number of the transaction is another each time."""
    home = operator.root / "home"
    files = [path for path in home.rglob("*") if ".stub" not in path.parts]
    found: dict[str, object] = {str(path.relative_to(home)): path.is_file() and path.read_bytes() for path in files}
    records = [{**record, "transactionId": "any"} for record in operator.records()]
    return found | {str((operator.state / "ownership.json").relative_to(home)): records}


@pytest.mark.parametrize("operation", STEPS)
def test_the_steps_are_all_that_an_operation_takes(operation: str, templates: Templates) -> None:
    operator = templates.operator(applied=operation != "apply")
    operator.installation = "second" if operation == "rebind" else "first"
    assert operator.setup(operation)["exitCode"] == 0
    assert operator.steps() == STEPS[operation]


@pytest.mark.parametrize("case", [marked(case) for case in cases()])
def test_setup_killed_anywhere_is_finished_by_the_next(
    case: Case, templates: Templates, undisturbed: dict[str, dict[str, object]]
) -> None:
    operator = templates.operator(applied=case.operation != "apply")
    operator.installation = "second" if case.operation == "rebind" else "first"
    rest = operator.rest()

    ended = kill(operator, case)

    assert_ended_as_expected(ended, case, operator)
    operator.until_fence_falls()
    assert operator.rest() == rest
    assert_next_apply_finishes(operator, case)
    assert operator.is_registered_for(operator.installation)
    if case.is_telling:
        assert left_by(operator) == undisturbed[operator.installation]
    else:
        assert_remove_removes(operator)
    assert operator.rest() == rest
    assert operator.running() == []


def kill(operator: Operator, case: Case) -> dict[str, object]:
    """Run the operation until it is struck; the client behaves again afterwards."""
    held = None
    if case.held is not None:
        operator.stub.behave("claude", "add" if case.verb == "add" else "remove", **{f"hold_{case.held}": True})
        held = str(operator.root / "home" / ".stub" / f"held.{case.held}")
    ended = operator.setup(case.operation, step=case.step, victim=case.victim, held=held)
    if held is not None:
        operator.stub.behave("claude", "add")
        operator.stub.behave("claude", "remove")
    return ended


def assert_ended_as_expected(ended: dict[str, object], case: Case, operator: Operator) -> None:
    if case.victim in {"command", "both"}:
        assert ended == {"signal": 9, "crashed": False}
    elif case.victim in SIGNALS:
        assert ended["exitCode"] == SIGNALS[case.victim]
    elif case.victim == "client" and ended["exitCode"] == 0:
        # It had done its work, or was only asked for something that is good to know.
        assert case.held == "after" or case.verb == "hidden"
        assert operator.is_registered_for(operator.installation) == (case.operation in {"apply", "rebind"})
    else:
        assert ended["exitCode"] == 1


def assert_next_apply_finishes(operator: Operator, case: Case) -> None:
    code = operator.code("apply")
    if code == "registration_fingerprint_mismatch":
        # A rebind that had not begun to change anything: what we own is still registered for the old path.
        assert case.operation == "rebind"
        assert operator.is_registered_for("first")
        code = operator.code("rebind")
        assert code == "rebound"
    assert code in {"applied", "pending_recovered", "already_equivalent", "rebound"}


def assert_remove_removes(operator: Operator) -> None:
    assert operator.code("remove") == "removed"
    assert operator.registered() is None
    assert operator.records() == []
