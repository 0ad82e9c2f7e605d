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
from pi_session_mcp.doctor.checks import TABLE, examine
from pi_session_mcp.doctor.subject import ALIAS, PIN, PROFILE, TARGET, UNCHECKED, VARIABLE, Severity
from pi_session_mcp.doctor.subjects import agent_directory, extensions
from pi_session_mcp.runtime.problem import CONFIGURED_NODE, CONFIGURED_SDK
from pi_session_mcp.runtime.problem import REMEDIATIONS as OF_THE_RUNTIME
from tests.support.installation import Installation
from tests.unit.doctor.scenes import SCENES, Scene
from tools import doctor_reference

VALIDATOR = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[3] / doctor_reference.SCHEMA).read_text())
)
IDS = [
    "python_version_unsupported",
    "platform_unsupported",
    "package_metadata_unreadable",
    "package_modified",
    "node_missing",
    "node_version_unsupported",
    "pi_runtime_missing",
    "pi_version_unsupported",
    "pi_runtime_broken",
    "pi_agent_directory_ignored",
    "pi_configuration_invalid",
    "pi_agent_directory_not_writable",
    "pi_lock_present",
    "proxy_invalid",
    "variable_not_passed_on",
    "config_missing",
    "config_unreadable",
    "config_invalid",
    "workspace_missing",
    "workspace_not_directory",
    "workspace_path_not_utf8",
    "workspace_unreadable",
    "workspace_not_writable",
    "workspace_contains_policy",
    "workspace_instructions_left_out",
    "profile_provider_unknown",
    "profile_model_unknown",
    "profile_authentication_missing",
    "profile_authentication_unavailable",
    "profile_model_unavailable",
    "profile_thinking_level_unavailable",
    "search_tools_missing",
    "temporary_directory_unusable",
    "state_directory_unsupported",
    "setup_pending",
    "extension_missing",
    "extension_version_mismatch",
    "extension_in_workspace",
    "extension_broken",
    "extension_form_unsupported",
    "package_without_extension",
    "extension_dependency_missing",
    "extension_dependency_outside",
]
"""They are part of the contract: never renamed, and in this order."""
REMEDIES = sorted({UNCHECKED, *(remedy for row in TABLE for remedy in row.remedies)})
NEEDS_A_USER_WITHOUT_HOME = {
    (agent_directory.PI_CONFIGURATION_INVALID, agent_directory.AGENT_DIRECTORY),
    (extensions.EXTENSION_MISSING, agent_directory.AGENT_DIRECTORY),
}
"""The user database always knows the user of the tests; `test_checks.py` has these."""


@pytest.fixture(scope="module", autouse=True)
def imports(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a look imports late: each report is made in a child, which would import it again."""
    here = Installation(tmp_path_factory.mktemp("imports"))
    examine(here.examined())


def test_nothing_is_wrong_with_a_good_installation(here: Installation) -> None:
    checks = here.report().checks

    assert {check.row.id for check in checks} == set(IDS)
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
    assert {(check.row, check.remedy) for check in found} == {(scene.row, scene.remedy)}
    assert {check.severity for check in found} == {scene.row.severity}
    assert here.findings() == []


def test_each_check_and_each_of_its_remedies_has_an_arrangement() -> None:
    shown = {(scene.row, scene.remedy) for scene in SCENES}

    assert shown | NEEDS_A_USER_WITHOUT_HOME == {(row, remedy) for row in TABLE for remedy in row.remedies}


def test_the_table_has_each_id_once_and_in_its_place() -> None:
    assert [row.id for row in TABLE] == IDS


@pytest.mark.parametrize("remedy", REMEDIES)
def test_every_command_that_a_remedy_names_exists(remedy: str) -> None:
    for named in re.findall(r"`pi-session-mcp ([a-z -]+)`", remedy):
        assert isinstance(parse([*named.split(), "--help"])(ReportStage()), Document)


def test_no_remedy_names_a_command_outside_of_a_code_span() -> None:
    commands = r"(?<!`)pi-session-mcp (runtime|config|extensions|doctor|demo|setup|serve)\b"

    assert [remedy for remedy in REMEDIES if re.search(commands, remedy)] == []


def test_the_same_trouble_has_the_same_sentence_in_every_command() -> None:
    assert {OF_THE_RUNTIME[code] for code in OF_THE_RUNTIME if code in {"node_missing", "pi_runtime_missing"}} <= set(
        REMEDIES
    )
    assert {CONFIGURED_NODE, CONFIGURED_SDK} <= set(REMEDIES)


def test_subjects_that_vary_are_aliases_or_pins(here: Installation) -> None:
    for check in here.report().checks:
        if check.row.subject in {ALIAS, PROFILE}:
            assert re.fullmatch(ALIAS_PATTERN, check.subject)
        elif check.row.subject == PIN:
            assert re.fullmatch(f"{ALIAS_PATTERN}:ext", check.subject)
        elif check.row.subject == TARGET:
            assert check.subject == "setup state"
        elif check.row.subject == VARIABLE:
            assert check.subject == "variables"
        else:
            assert check.subject == check.row.subject
