"""Setup may be killed anywhere: the next apply finishes, the next remove removes, and nothing else was touched.

Every case is an operation, a step of it, and a victim. `-m matrix` runs those that the plain run leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.setup_worlds import Operator, fresh_copy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.setup_worlds import Driver

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


@dataclass(frozen=True, slots=True)
class Templates:
    """Worlds to start from: nothing is registered, or the first installation is. `root` is where they are used."""

    driver: Driver
    root: Path
    clean: Path
    applied: Path

    def operator(self, operation: str) -> Operator:
        """Somebody about to do `operation`, in a world as if nothing had ever happened to it."""
        fresh_copy(self.clean if operation == "apply" else self.applied, self.root)
        # The stubs' words are on the disk already; making them anew writes the same.
        before = (self.root / "home" / ".claude.json").read_text()
        operator = Operator(self.root, self.driver)
        operator.claude_file.write_text(before)
        return operator


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Templates:
    base = tmp_path_factory.mktemp("killed")
    made = Templates(driver, base / "world", base / "clean", base / "applied")
    (base / "world").mkdir(mode=0o700)
    operator = Operator(made.root, driver)
    fresh_copy(made.root, made.clean)
    assert operator.code("apply") == "applied"
    fresh_copy(made.root, made.applied)
    return made


@pytest.mark.parametrize("operation", STEPS)
def test_the_steps_are_all_that_an_operation_takes(operation: str, templates: Templates) -> None:
    operator = templates.operator(operation)
    operator.installation = "second" if operation == "rebind" else "first"
    assert operator.setup(operation)["exitCode"] == 0
    assert operator.steps() == STEPS[operation]


@pytest.mark.parametrize("case", [marked(case) for case in cases()])
def test_setup_killed_anywhere_is_finished_by_the_next(case: Case, templates: Templates) -> None:
    operator = templates.operator(case.operation)
    operator.installation = "second" if case.operation == "rebind" else "first"
    rest = operator.rest()

    ended = kill(operator, case)

    assert_ended_as_expected(ended, case, operator)
    operator.until_fence_falls()
    assert operator.rest() == rest
    assert_next_apply_finishes(operator, case)
    assert operator.is_registered_for(operator.installation)
    assert operator.code("remove") == "removed"
    assert operator.registered() is None
    assert operator.records() == []
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
