"""What is decided from what was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pi_session_mcp.doctor.checks import MINIMUM_PYTHON, decide
from pi_session_mcp.doctor.facts import (
    NO_HOME,
    AgentStore,
    Configured,
    Facts,
    Greeted,
    Held,
    NoAgentDirectory,
    Package,
    Part,
    Pinned,
    PiSeen,
    ProfileSeen,
    State,
    Unseen,
    Workspace,
)
from pi_session_mcp.doctor.made import Check
from pi_session_mcp.doctor.words import ORDER, TABLE, Id, Remedy, Severity
from pi_session_mcp.extensions.outcomes import VERDICTS, Condition
from pi_session_mcp.platform.directory import Directory

FINE = Facts(
    python=MINIMUM_PYTHON,
    platform="linux",
    package=Package(metadata_readable=True),
    node=Part("ok", configured=False),
    sdk=Part("ok", configured=False),
    pi=PiSeen(Greeted.WHOLE, (), proxies=True, profiles=(ProfileSeen("p"),), left_out={"w": False}),
    kept_back=(),
    agent_store=AgentStore.FINE,
    ignored_variable=None,
    configuration=Configured(),
    has_coding_profile=True,
    workspaces=(Workspace("w", Directory.WRITABLE),),
    has_search_tools=True,
    has_temporary_directory=True,
    state=State.FINE,
    pending=(),
    pins=(Pinned("p", "ext", "ok"),),
)


def found(facts: Facts) -> list[tuple[Id, Remedy | None]]:
    """What is wrong according to these facts."""
    return [(check.id, check.remedy) for check in decide(facts) if check.severity is not Severity.OK]


def test_every_check_is_made_when_everything_was_seen_and_fine() -> None:
    assert [check.id for check in decide(FINE)] == [row.id for row in TABLE]
    assert found(FINE) == []


@pytest.mark.parametrize(
    ("part", "first"),
    [
        ("package", Id.PACKAGE_METADATA_UNREADABLE),
        ("node", Id.NODE_MISSING),
        ("sdk", Id.PI_RUNTIME_MISSING),
        ("pi", Id.PI_CONFIGURATION_INVALID),
        ("configuration", Id.CONFIG_UNREADABLE),
        ("has_search_tools", Id.SEARCH_TOOLS_MISSING),
        ("has_temporary_directory", Id.TEMPORARY_DIRECTORY_UNUSABLE),
        ("state", Id.STATE_DIRECTORY_UNSUPPORTED),
        ("pending", Id.SETUP_PENDING),
    ],
)
def test_a_look_that_went_wrong_is_the_result_of_its_own_check(part: str, first: Id) -> None:
    unseen: Any = {part: Unseen()}

    assert found(replace(FINE, **unseen)) == [(first, Remedy.UNCHECKED)]


@pytest.mark.parametrize("workspace", [Workspace("w", Directory.UNSEEN), Workspace("w", Directory.WRITABLE, Unseen())])
def test_a_workspace_that_could_not_be_looked_at_is_not_fine(workspace: Workspace) -> None:
    ((_, remedy),) = found(replace(FINE, workspaces=(workspace,)))

    assert remedy is Remedy.UNCHECKED


@pytest.mark.parametrize("status", [None, "a_code_of_tomorrow"])
def test_a_pin_of_unknown_state_is_not_fine(status: str | None) -> None:
    facts = replace(FINE, pins=(Pinned("p", "ext", status),))

    assert found(facts) == [(Id.EXTENSION_MISSING, Remedy.UNCHECKED)]


def test_without_a_home_there_are_no_files_of_pi_and_no_extensions() -> None:
    facts = replace(FINE, pi=NoAgentDirectory(), pins=(Pinned("p", "ext", NO_HOME),))

    assert found(facts) == [
        (Id.PI_CONFIGURATION_INVALID, Remedy.AGENT_DIRECTORY),
        (Id.EXTENSION_MISSING, Remedy.AGENT_DIRECTORY),
    ]


def test_checks_are_ordered_by_the_table_and_then_by_subject() -> None:
    workspaces = tuple(Workspace(alias, Directory.READ_ONLY) for alias in ("b", "a"))
    pins = (Pinned("b", "x", "ok"), Pinned("a", "y", "extension_missing"), Pinned("a", "x", "ok"))

    checks = decide(replace(FINE, workspaces=workspaces, pins=pins))

    assert list(checks) == sorted(checks, key=lambda check: (ORDER[check.id], check.subject))
    assert [check.subject for check in checks if check.id is Id.EXTENSION_MISSING] == ["a:x", "a:y", "b:x"]


def test_a_missing_extension_gives_that_check_alone() -> None:
    checks = decide(replace(FINE, pins=(Pinned("p", "ext", "extension_missing"),)))

    assert [check.id for check in checks if check.subject == "p:ext"] == [Id.EXTENSION_MISSING]


def test_what_follows_from_a_finding_is_not_reported() -> None:
    facts = replace(FINE, node=Part("node_missing", configured=False), workspaces=(Workspace("w", Directory.MISSING),))

    ids = {check.id for check in decide(facts)}
    assert Id.NODE_VERSION_UNSUPPORTED not in ids
    assert {what for what in ids if what.startswith("workspace_")} == {Id.WORKSPACE_MISSING}


def test_a_workspace_may_be_read_only_and_hold_anything_when_no_profile_is_coding() -> None:
    held = (Workspace("w", Directory.READ_ONLY), Workspace("v", Directory.WRITABLE, Held.CONFIGURATION))

    assert found(replace(FINE, has_coding_profile=False, workspaces=held)) == []


@pytest.mark.parametrize(("version", "supported"), [((3, 10), False), ((3, 11), True), ((4, 0), True)])
def test_the_oldest_python_is_the_packages_own_when_its_metadata_do_not_say(
    version: tuple[int, int], *, supported: bool
) -> None:
    assert (found(replace(FINE, python=version)) == []) is supported


def test_each_unfinished_registration_is_a_finding_of_its_own() -> None:
    checks = decide(replace(FINE, pending=("codex:user", "claude-code:user")))

    assert [check.subject for check in checks if check.id is Id.SETUP_PENDING] == ["claude-code:user", "codex:user"]


def test_nothing_is_said_about_records_that_were_not_read() -> None:
    assert Id.SETUP_PENDING not in {check.id for check in decide(replace(FINE, pending=None))}


def test_a_check_that_is_fine_has_nothing_but_id_severity_and_subject() -> None:
    for check in decide(FINE):
        assert check == Check(check.id, Severity.OK, check.subject)


@pytest.mark.parametrize("condition", VERDICTS)
def test_what_can_be_found_of_an_extension_is_reported_under_its_own_name_with_the_same_sentence(
    condition: Condition,
) -> None:
    verdict = VERDICTS[condition]

    *_, found = (check for check in decide(replace(FINE, pins=(Pinned("p", "ext", condition.value),))) if check.remedy)

    assert (found.id.value, found.remedy) == (condition.value, verdict.remediation)
    assert found.severity is (Severity.WARNING if verdict.fault is None else Severity.ERROR)


def test_a_proxy_that_pis_settings_name_need_not_be_passed_on_and_its_exceptions_must() -> None:
    lost = replace(FINE, kept_back=("https_proxy", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"))
    named = replace(lost, pi=replace(FINE.pi, proxy_setting=True) if isinstance(FINE.pi, PiSeen) else None)

    assert found(named) == [(Id.VARIABLE_NOT_PASSED_ON, Remedy.PASS_VARIABLE)]
    assert len(found(lost)) == 4
    assert found(replace(lost, pi=None))[0] == (Id.VARIABLE_NOT_PASSED_ON, Remedy.PROXY_SETTING)


def test_instructions_that_are_left_out_are_told_of_their_workspace_alone() -> None:
    seen = PiSeen(Greeted.WHOLE, (), proxies=True, profiles=(), left_out={"a": True, "b": False})

    workspaces = tuple(Workspace(alias, Directory.READ_ONLY) for alias in ("a", "b", "c"))
    facts = replace(FINE, pi=seen, workspaces=workspaces, has_coding_profile=False)

    checks = [check for check in decide(facts) if check.id is Id.WORKSPACE_INSTRUCTIONS_LEFT_OUT]

    assert [(check.subject, check.severity) for check in checks] == [("a", Severity.WARNING), ("b", Severity.OK)]
