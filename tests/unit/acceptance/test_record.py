"""The record tells verdicts and nothing of the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acceptance.errors import HarnessError
from acceptance.programs import Program
from acceptance.record import Run, as_text, record
from acceptance.scenario import Check

PASSED, BROKEN = Check("step_1", True, "planned"), Check("step_2", False, "failed")  # noqa: FBT003
CODEX = Program("codex", "codex", Path("/secret/place"), "codex-cli 0.171.0")


def test_each_check_keeps_its_verdict_and_all_are_counted() -> None:
    runs = [Run("codex:user", "plain", (PASSED, BROKEN)), Run("codex:user", "full", (PASSED,))]

    told = record(runs, [CODEX], "wheel")

    assert (told["checks"], told["passed"], told["failed"]) == (3, 2, 1)
    assert told["clients"] == {"codex": "codex-cli 0.171.0"}
    assert told["runs"][0] == {
        "target": "codex:user",
        "configuration": "plain",
        "checks": [
            {"id": "step_1", "passed": True, "seen": "planned"},
            {"id": "step_2", "passed": False, "seen": "failed"},
        ],
    }


def test_a_record_is_written_as_it_is() -> None:
    document = record([Run("codex:user", "plain", (PASSED,))], [CODEX], "checkout")

    assert json.loads(as_text(document)) == document


def test_a_record_that_would_tell_a_path_is_not_written() -> None:
    document = record([Run("codex:user", "plain", (Check("x", False, "at /home/o"),))], [CODEX], "checkout")  # noqa: FBT003

    with pytest.raises(HarnessError):
        as_text(document)
