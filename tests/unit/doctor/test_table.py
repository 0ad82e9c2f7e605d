"""Each check of the table fires alone, and its remedy, followed to the letter, makes it go away."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest

from pi_session_mcp.cli.doctor_report import outcome
from pi_session_mcp.cli.outcome import Document
from pi_session_mcp.cli.program import parse
from pi_session_mcp.cli.progress import ReportStage
from pi_session_mcp.cli.render import json_report
from pi_session_mcp.config.pointer import ALIAS_PATTERN
from pi_session_mcp.doctor.probe import DoctorInputs, look
from pi_session_mcp.doctor.words import ALIAS, PIN, PROFILE, ROWS, TABLE, TARGET, VARIABLE, Id, Remedy, Severity
from pi_session_mcp.runtime.problem import CONFIGURED_NODE, CONFIGURED_SDK
from pi_session_mcp.runtime.problem import REMEDIATIONS as OF_THE_RUNTIME
from tests.support.installation import Installation
from tests.unit.doctor.scenes import SCENES, Scene
from tools import doctor_reference

VALIDATOR = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[3] / doctor_reference.SCHEMA).read_text())
)
NEEDS_A_USER_WITHOUT_HOME = {
    (Id.PI_CONFIGURATION_INVALID, Remedy.AGENT_DIRECTORY),
    (Id.EXTENSION_MISSING, Remedy.AGENT_DIRECTORY),
}
"""The user database always knows the user of the tests; `test_checks.py` has these."""


@pytest.fixture(scope="module", autouse=True)
def imports(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a look imports late: each report is made in a child, which would import it again."""
    here = Installation(tmp_path_factory.mktemp("imports"))
    look(DoctorInputs(here.environ, here.cwd, here.prefix, here.package, here.platform, here.machine_root))


def test_nothing_is_wrong_with_a_good_installation(here: Installation) -> None:
    checks = here.report().checks

    assert {check.id for check in checks} == set(Id)
    assert {check.severity for check in checks} == {Severity.OK}
    assert here.report().exit_status == 0


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_each_check_fires_alone_is_reported_by_the_schema_and_goes_away_by_its_remedy(
    scene: Scene, here: Installation
) -> None:
    if scene.only_on not in {"", sys.platform}:
        pytest.skip(f"only on {scene.only_on}")

    scene.breaks(here)
    report = here.report()
    found = [check for check in report.checks if check.severity is not Severity.OK]
    scene.mends(here)

    VALIDATOR.validate(json.loads(json_report(outcome(report))))
    assert {(check.id, check.remedy) for check in found} == {(scene.id, scene.remedy)}
    assert {check.severity for check in found} == {ROWS[scene.id].severity}
    assert here.findings() == []


def test_each_check_and_each_of_its_remedies_has_an_arrangement() -> None:
    shown = {(scene.id, scene.remedy) for scene in SCENES}

    assert shown | NEEDS_A_USER_WITHOUT_HOME == {(row.id, remedy) for row in TABLE for remedy in row.remedies}


def test_the_table_has_each_id_once_and_each_sentence_somewhere() -> None:
    assert [row.id for row in TABLE] == list(Id)
    assert {remedy for row in TABLE for remedy in row.remedies} | {Remedy.UNCHECKED} == set(Remedy)


@pytest.mark.parametrize("remedy", Remedy)
def test_every_command_that_a_remedy_names_exists(remedy: Remedy) -> None:
    for named in re.findall(r"`pi-session-mcp ([a-z -]+)`", remedy):
        assert isinstance(parse([*named.split(), "--help"])(ReportStage()), Document)


def test_no_remedy_names_a_command_outside_of_a_code_span() -> None:
    commands = r"(?<!`)pi-session-mcp (runtime|config|extensions|doctor|demo|setup|serve)\b"

    assert [remedy for remedy in Remedy if re.search(commands, remedy)] == []


def test_the_same_trouble_has_the_same_sentence_in_every_command() -> None:
    assert {OF_THE_RUNTIME[code] for code in OF_THE_RUNTIME if code in {"node_missing", "pi_runtime_missing"}} <= set(
        Remedy
    )
    assert {CONFIGURED_NODE, CONFIGURED_SDK} <= set(Remedy)


def test_subjects_that_vary_are_aliases_or_pins(here: Installation) -> None:
    for check in here.report().checks:
        if ROWS[check.id].subject in {ALIAS, PROFILE}:
            assert re.fullmatch(ALIAS_PATTERN, check.subject)
        elif ROWS[check.id].subject == PIN:
            assert re.fullmatch(f"{ALIAS_PATTERN}:ext", check.subject)
        elif ROWS[check.id].subject == TARGET:
            assert check.subject == "setup state"
        elif ROWS[check.id].subject == VARIABLE:
            assert check.subject == "variables"
        else:
            assert check.subject == ROWS[check.id].subject
