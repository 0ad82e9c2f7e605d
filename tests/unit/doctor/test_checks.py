"""What is decided from what was seen."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pi_session_mcp.doctor.checks import SUBJECTS, TABLE, Seen, decide
from pi_session_mcp.doctor.pi_answer import PiAnswer, Profile
from pi_session_mcp.doctor.subject import UNCHECKED, Check, Row, Severity, Subject, Unseen
from pi_session_mcp.doctor.subjects import (
    agent_directory,
    configuration,
    extensions,
    network,
    node,
    package,
    profiles,
    runtime,
    setup_state,
    system,
    workspaces,
)
from pi_session_mcp.doctor.subjects.extensions import NO_HOME, Pinned
from pi_session_mcp.doctor.subjects.network import Network
from pi_session_mcp.doctor.subjects.node import Part
from pi_session_mcp.doctor.subjects.setup_state import SetupState
from pi_session_mcp.doctor.subjects.workspaces import Workspace
from pi_session_mcp.extensions.outcomes import VERDICTS, Condition
from pi_session_mcp.host.protocol import PiFault
from pi_session_mcp.platform.directory import Directory
from tests.unit.doctor.facts import FINE


def found(seen: Seen) -> list[tuple[Row, str | None]]:
    """What is wrong according to these facts."""
    return [(check.row, check.remedy) for check in decide(seen) if check.severity is not Severity.OK]


def test_every_check_is_made_when_everything_was_seen_and_fine() -> None:
    assert [check.row for check in decide(FINE)] == list(TABLE)
    assert found(FINE) == []


def test_every_subject_has_facts_here() -> None:
    assert tuple(FINE) == SUBJECTS


@pytest.mark.parametrize(
    ("subject", "first"),
    [
        (package.SUBJECT, package.PACKAGE_METADATA_UNREADABLE),
        (node.SUBJECT, node.NODE_MISSING),
        (runtime.SDK, runtime.PI_RUNTIME_MISSING),
        (agent_directory.VARIABLE, agent_directory.PI_AGENT_DIRECTORY_IGNORED),
        (agent_directory.FILES, agent_directory.PI_CONFIGURATION_INVALID),
        (agent_directory.LOCK, agent_directory.PI_AGENT_DIRECTORY_NOT_WRITABLE),
        (configuration.SUBJECT, configuration.CONFIG_UNREADABLE),
        (runtime.SEARCH_TOOLS, runtime.SEARCH_TOOLS_MISSING),
        (system.TEMPORARY_DIRECTORY, system.TEMPORARY_DIRECTORY_UNUSABLE),
        (setup_state.SUBJECT, setup_state.STATE_DIRECTORY_UNSUPPORTED),
    ],
    ids=lambda one: one.id if isinstance(one, Row) else "",
)
def test_a_look_that_went_wrong_is_the_result_of_its_own_check(subject: Subject[Any], first: Row) -> None:
    assert found({**FINE, subject: Unseen()}) == [(first, UNCHECKED)]


def test_records_that_could_not_be_looked_at_may_hold_something_unfinished() -> None:
    seen = {**FINE, setup_state.SUBJECT: SetupState("ok", Unseen())}

    assert found(seen) == [(setup_state.SETUP_PENDING, UNCHECKED)]


@pytest.mark.parametrize(
    "workspace", [Workspace("w", Directory.UNSEEN), Workspace("w", Directory.WRITABLE, holds="unknown")]
)
def test_a_workspace_that_could_not_be_looked_at_is_not_fine(workspace: Workspace) -> None:
    ((_, remedy),) = found({**FINE, workspaces.SUBJECT: (workspace,)})

    assert remedy == UNCHECKED


@pytest.mark.parametrize("status", [None, "a_code_of_tomorrow"])
def test_a_pin_of_unknown_state_is_not_fine(status: str | None) -> None:
    seen = {**FINE, extensions.SUBJECT: (Pinned("p", "ext", status),)}

    assert found(seen) == [(extensions.EXTENSION_MISSING, UNCHECKED)]


def test_without_a_home_there_are_no_files_of_pi_and_no_extensions() -> None:
    files = agent_directory.Files(has_place=False)
    seen = {**FINE, agent_directory.FILES: files, extensions.SUBJECT: (Pinned("p", "ext", NO_HOME),)}

    assert found(seen) == [
        (agent_directory.PI_CONFIGURATION_INVALID, agent_directory.AGENT_DIRECTORY),
        (extensions.EXTENSION_MISSING, agent_directory.AGENT_DIRECTORY),
    ]


def test_checks_are_ordered_by_the_table_and_then_by_subject() -> None:
    both = tuple(Workspace(alias, Directory.READ_ONLY) for alias in ("b", "a"))
    pins = (Pinned("b", "x", "ok"), Pinned("a", "y", "extension_missing"), Pinned("a", "x", "ok"))

    checks = decide(dict(reversed({**FINE, workspaces.SUBJECT: both, extensions.SUBJECT: pins}.items())))

    assert list(checks) == sorted(checks, key=lambda check: (TABLE.index(check.row), check.subject))
    assert [check.subject for check in checks if check.row is extensions.EXTENSION_MISSING] == ["a:x", "a:y", "b:x"]


def test_a_missing_extension_gives_that_check_alone() -> None:
    checks = decide({**FINE, extensions.SUBJECT: (Pinned("p", "ext", "extension_missing"),)})

    assert [check.row for check in checks if check.subject == "p:ext"] == [extensions.EXTENSION_MISSING]


def test_what_follows_from_a_finding_is_not_reported() -> None:
    missing = (Workspace("w", Directory.MISSING),)

    checks = decide({**FINE, node.SUBJECT: Part("node_missing", configured=False), workspaces.SUBJECT: missing})

    rows = {check.row for check in checks}
    assert node.NODE_VERSION_UNSUPPORTED not in rows
    assert {row for row in rows if row.id.startswith("workspace_")} == {workspaces.WORKSPACE_MISSING}


def test_a_workspace_may_be_read_only_and_hold_anything_when_no_profile_is_coding() -> None:
    held = (
        Workspace("w", Directory.READ_ONLY, is_for_coding=False),
        Workspace("v", Directory.WRITABLE, holds="configuration", is_for_coding=False),
    )

    assert found({**FINE, workspaces.SUBJECT: held}) == []


@pytest.mark.parametrize(("version", "supported"), [((3, 10), False), ((3, 11), True), ((4, 0), True)])
def test_the_oldest_python_is_the_packages_own_when_its_metadata_do_not_say(
    version: tuple[int, int], *, supported: bool
) -> None:
    assert (found({**FINE, system.SYSTEM: system.System(version, "linux")}) == []) is supported


def test_each_unfinished_registration_is_a_finding_of_its_own() -> None:
    checks = decide({**FINE, setup_state.SUBJECT: SetupState("ok", ("codex:user", "claude-code:user"))})

    assert [check.subject for check in checks if check.row is setup_state.SETUP_PENDING] == [
        "claude-code:user",
        "codex:user",
    ]


def test_nothing_is_said_about_records_that_were_not_read() -> None:
    checks = decide({**FINE, setup_state.SUBJECT: SetupState("ok", None)})

    assert setup_state.SETUP_PENDING not in {check.row for check in checks}


def test_a_check_that_is_fine_has_nothing_but_id_severity_and_subject() -> None:
    for check in decide(FINE):
        assert check == Check(check.row, check.subject)
        assert check.members() == {"id": check.row.id, "severity": "ok", "subject": check.subject}


@pytest.mark.parametrize("condition", VERDICTS)
def test_what_can_be_found_of_an_extension_is_reported_under_its_own_name_with_the_same_sentence(
    condition: Condition,
) -> None:
    verdict = VERDICTS[condition]

    *_, found = (
        check for check in decide({**FINE, extensions.SUBJECT: (Pinned("p", "ext", condition.value),)}) if check.remedy
    )

    assert (found.row.id, found.remedy) == (condition.value, verdict.remediation)
    assert found.severity is (Severity.WARNING if verdict.fault is None else Severity.ERROR)


def test_a_proxy_that_pis_settings_name_need_not_be_passed_on_and_its_exceptions_must() -> None:
    names = ("https_proxy", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
    lost = {**FINE, network.SUBJECT: Network(proxies=True, proxy_setting=False, kept_back=names)}
    named = {**FINE, network.SUBJECT: Network(proxies=True, proxy_setting=True, kept_back=names)}
    unasked = {**FINE, network.SUBJECT: Network(proxies=None, proxy_setting=False, kept_back=names)}

    assert found(named) == [(network.VARIABLE_NOT_PASSED_ON, network.PASS_VARIABLE)]
    assert len(found(lost)) == 4
    assert found(unasked)[0] == (network.VARIABLE_NOT_PASSED_ON, network.PROXY_SETTING)


def test_instructions_that_are_left_out_are_told_of_their_workspace_alone() -> None:
    three = tuple(
        Workspace(alias, Directory.READ_ONLY, is_for_coding=False, left_out=left_out)
        for alias, left_out in (("a", True), ("b", False), ("c", None))
    )

    checks = decide({**FINE, workspaces.SUBJECT: three})

    told = [check for check in checks if check.row is workspaces.WORKSPACE_INSTRUCTIONS_LEFT_OUT]
    assert [(check.subject, check.severity) for check in told] == [("a", Severity.WARNING), ("b", Severity.OK)]


@pytest.mark.parametrize(
    ("answer", "can_start"),
    [
        (PiAnswer(sdk_loads=True, files=(), proxies=True, profiles=()), True),
        (PiAnswer(sdk_loads=False, files=(), proxies=True, profiles=()), False),
        (PiAnswer(sdk_loads=True, files=None, proxies=True, profiles=()), False),
        (PiAnswer(sdk_loads=True, files=(PiFault.MODELS_REFUSED,), proxies=True, profiles=()), False),
        (PiAnswer(sdk_loads=True, files=(), proxies=False, profiles=()), False),
    ],
)
def test_profiles_count_when_nothing_else_would_refuse_every_start(answer: PiAnswer, *, can_start: bool) -> None:
    assert answer.can_start is can_start


_LISTENING: list[list[str]] = []


def _hear(event: str, _arguments: object) -> None:
    for events in _LISTENING:
        events.append(event)


sys.addaudithook(_hear)


@pytest.mark.parametrize("seen", [FINE, dict.fromkeys(SUBJECTS, Unseen())], ids=["fine", "unseen"])
def test_a_verdict_touches_nothing_outside_of_the_process(seen: Seen) -> None:
    decide(seen)
    events: list[str] = []

    _LISTENING.append(events)
    try:
        decide({**seen, profiles.SUBJECT: (Profile("p", refused="unknown_model"),)})
    finally:
        _LISTENING.clear()

    assert [event for event in events if not event.startswith(("object.", "sys._getframe"))] == []
