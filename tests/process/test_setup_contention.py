"""One setup at a time: the others wait, and find what the first has done."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.setup_worlds import Driver, Operator
from tests.support.trees import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    with Driver() as driver:
        yield Operator(tmp_path, driver)


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + 5 * WAIT_S  # it starts a driver and several clients
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def held(operator: Operator) -> bool:
    return (operator.root / "home" / ".stub" / "held.before").exists()


def finding(answer: dict[str, Any]) -> tuple[str, str]:
    (found,) = answer["findings"]
    return found["status"], found["code"]


def test_of_two_at_once_one_applies_and_the_other_waits_and_finds_it(operator: Operator) -> None:
    operator.stub.behave("claude", "add", hold_before=True)
    with Driver() as another:
        operator.driver.begin(operator.asked("apply"))
        until(lambda: held(operator))
        another.begin(operator.asked("apply"))
        until(lambda: operator.notes.exists() and operator.steps() == ["fence.wanted"])
        operator.stub.release()
        assert finding(operator.driver.end()) == ("ok", "applied")
        assert finding(another.end()) == ("unchanged", "already_equivalent")
    assert operator.stub.verbs("claude").count("add") == 1


def test_of_eight_at_once_one_applies(operator: Operator) -> None:
    with ExitStack() as drivers:
        eight = [drivers.enter_context(Driver()) for _ in range(8)]
        for driver in eight:
            driver.begin(operator.asked("apply"))
        codes = sorted(finding(driver.end())[1] for driver in eight)
    assert codes == ["already_equivalent"] * 7 + ["applied"]
    assert operator.stub.verbs("claude").count("add") == 1
    assert len(operator.records()) == 1


@pytest.mark.parametrize("macos", [False, True])
def test_who_waits_longer_than_the_bound_is_told(operator: Operator, macos: bool) -> None:  # noqa: FBT001
    operator.stub.behave("claude", "add", hold_before=True)
    with Driver() as another:
        operator.driver.begin(operator.asked("apply"))
        until(lambda: held(operator))
        another.begin(operator.asked("apply", lock_within_s=0.2, macos=macos))
        assert finding(another.end()) == ("failed", "lock_busy")
        assert operator.steps() == ["fence.wanted"]
        operator.stub.release()
        assert finding(operator.driver.end()) == ("ok", "applied")


def test_each_project_and_each_home_of_a_client_has_its_own_record(operator: Operator) -> None:
    operator.target = "claude-code:project"
    other_project = operator.root / "other project"
    other_project.mkdir()
    assert operator.code("apply") == "applied"
    assert operator.code("apply", cwd=str(other_project)) == "applied"
    elsewhere = {**operator.environ, "CLAUDE_CONFIG_DIR": str(operator.root / "elsewhere")}
    operator.target = "claude-code:user"
    assert operator.code("apply") == "applied"
    assert operator.code("apply", environ=elsewhere) == "applied"
    assert len({record["place"] for record in operator.records()}) == 4

    assert operator.code("remove", environ=elsewhere) == "removed"
    assert operator.is_registered_for("first")
    assert len(operator.records()) == 3


def test_a_registration_that_another_scope_hides_is_left_alone_and_the_scope_is_named(operator: Operator) -> None:
    operator.stub.behave("claude", "get", fails_without_home=True)  # an old one, which cannot be asked for it alone
    operator.target = "claude-code:project"
    assert operator.code("apply") == "applied"
    operator.target = "claude-code:user"
    (finding,) = operator.setup("apply")["findings"]
    assert finding["code"] == "applied"

    operator.target = "claude-code:project"
    for operation, code in (("remove", "divergent"), ("apply", "divergence_requires_replacement")):
        (finding,) = operator.setup(operation)["findings"]
        assert (finding["status"], finding["code"], finding["otherScope"]) == ("divergent", code, "user")
    assert len(operator.records()) == 2

    operator.target = "claude-code:user"
    assert operator.code("remove") == "removed"
    operator.target = "claude-code:project"
    assert operator.code("remove") == "removed"


def test_several_targets_are_handled_in_order_and_each_once(operator: Operator) -> None:
    targets = ["codex:user", "claude-code:user", "codex:user:pi-session-mcp", "copilot:user"]
    answer = operator.setup("apply", targets=targets)
    told = [(found["target"]["client"], found["code"]) for found in answer["findings"]]
    assert told == [("codex", "applied"), ("claude-code", "applied"), ("copilot", "applied")]
    assert operator.stub.verbs("codex").count("add") == 1
    answer = operator.setup("remove", targets=targets)
    assert {found["code"] for found in answer["findings"]} == {"removed"}


def test_one_target_that_fails_does_not_stop_the_others(operator: Operator) -> None:
    (operator.root / "programs" / "codex").unlink()
    answer = operator.setup("apply", targets=["codex:user", "claude-code:user"])
    assert [found["code"] for found in answer["findings"]] == ["client_missing", "applied"]
    assert answer["exitCode"] == 1
    assert answer["status"] == "failed"
    assert operator.is_registered_for("first")
