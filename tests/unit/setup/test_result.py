"""One result, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.setup.messages import WORDS
from pi_session_mcp.setup.result import Conclusion, Finding, Operation, Result, SetupCode, Status
from pi_session_mcp.setup.steps import STEPS, Doing
from pi_session_mcp.setup.targets import Target

TARGET = Target("codex", "user")
PAGE = Path(__file__).parents[3] / "docs" / "setup.md"


def result(*statuses: Status, operation: Operation = Operation.APPLY, interrupted: ExitStatus | None = None) -> Result:
    return Result(
        operation, tuple(Finding(TARGET, Conclusion(status, SetupCode.ABSENT)) for status in statuses), interrupted
    )


@pytest.mark.parametrize(
    ("statuses", "worst", "exit_status"),
    [
        ((Status.OK, Status.UNCHANGED, Status.ABSENT), Status.OK, ExitStatus.OK),
        ((Status.OK, Status.DIVERGENT), Status.DIVERGENT, ExitStatus.FAILURE),
        ((Status.DIVERGENT, Status.UNSUPPORTED), Status.UNSUPPORTED, ExitStatus.FAILURE),
        ((Status.UNSUPPORTED, Status.FAILED, Status.OK), Status.FAILED, ExitStatus.FAILURE),
    ],
)
def test_the_worst_finding_decides(statuses: tuple[Status, ...], worst: Status, exit_status: ExitStatus) -> None:
    assert (result(*statuses).status, result(*statuses).exit_status) == (worst, exit_status)


def test_a_dry_run_that_finds_nothing_wrong_is_a_plan() -> None:
    assert result(Status.ABSENT, operation=Operation.DRY_RUN).status is Status.PLANNED


def test_a_signal_decides_the_exit_status_whatever_was_done() -> None:
    assert result(Status.OK, interrupted=ExitStatus.TERMINATED).exit_status is ExitStatus.TERMINATED


def test_the_report_names_the_target_and_the_code_and_nothing_else() -> None:
    (told,) = json.loads(json.dumps(result(Status.OK).members()))["findings"]
    target = {"client": "codex", "scope": "user", "alias": "pi-session-mcp"}
    assert told == {"target": target, "status": "ok", "code": "absent"}
    hidden = Finding(TARGET, Conclusion(Status.OK, SetupCode.APPLIED), other_scope="local")
    assert hidden.members()["otherScope"] == "local"


@pytest.mark.parametrize("code", SetupCode)
def test_every_code_has_its_words_and_stands_in_the_documentation_with_them(code: SetupCode) -> None:
    words = WORDS[code]
    cells = [f"`{code.value}`", words.meaning, words.remedy or ""]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    assert cells in rows


def test_every_stretch_of_a_run_has_three_points_and_a_record_is_staged_where_a_command_would_run() -> None:
    assert len(set(STEPS)) == len(STEPS) == 3 + 3 * len(Doing)
    assert {step for step in STEPS if step.endswith(".staged")} == {"pending.staged", "owned.staged", "forget.staged"}
    assert {step.rpartition(".")[0] for step in STEPS if step.endswith(".starting")} == set(Doing)


@pytest.mark.parametrize(("doing", "moment"), [(Doing.OWNED, "running"), (Doing.ADD, "staged"), (Doing.ADD, "")])
def test_a_stretch_has_no_other_points(doing: Doing, moment: str) -> None:
    with pytest.raises(AssertionError):
        doing.at(moment)
