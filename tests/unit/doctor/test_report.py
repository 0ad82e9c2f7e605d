"""The report: exit status, next command, members, and the published schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pi_session_mcp import __version__
from pi_session_mcp.cli.doctor_report import outcome
from pi_session_mcp.cli.render import failure_report, human_text, json_report
from pi_session_mcp.cli.streams import Form
from pi_session_mcp.doctor.checks import TABLE, Seen, decide
from pi_session_mcp.doctor.pi_answer import Profile
from pi_session_mcp.doctor.report import Report
from pi_session_mcp.doctor.subject import Severity, Subject, Unseen
from pi_session_mcp.doctor.subjects import (
    agent_directory,
    configuration,
    extensions,
    node,
    package,
    profiles,
    runtime,
    setup_state,
    workspaces,
)
from pi_session_mcp.doctor.subjects.configuration import UNNAMED, Status
from pi_session_mcp.doctor.subjects.extensions import Pinned
from pi_session_mcp.doctor.subjects.node import Part
from pi_session_mcp.doctor.subjects.runtime import PiRuntime
from pi_session_mcp.doctor.subjects.setup_state import SetupState
from pi_session_mcp.doctor.subjects.workspaces import Workspace
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.directory import Directory
from tests.unit.doctor.facts import FINE
from tools import doctor_reference

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / doctor_reference.SCHEMA).read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
WARNED = {**FINE, setup_state.SUBJECT: SetupState("file_system")}
BROKEN = {**WARNED, runtime.SDK: PiRuntime(Part("pi_runtime_missing", configured=False))}
REFUSED = {**FINE, configuration.SUBJECT: Status("config_invalid", {"pointer": "/workspaces", "rule": "is required"})}
UNREAD = {
    **FINE,
    configuration.SUBJECT: Status("config_invalid", {"line": 3, "column": 1, "rule": "must be UTF-8 text"}),
}


def report_of(facts: Seen) -> Report:
    """The report on these facts."""
    return Report(decide(facts))


def told(facts: Seen, columns: int = 80) -> list[str]:
    """What a person reads."""
    form = Form(columns=columns, colour=False, unicode=True)
    return human_text(outcome(report_of(facts)).blocks, form).splitlines()


@pytest.mark.parametrize(
    ("facts", "status"), [(FINE, 0), (WARNED, 1), (BROKEN, 2), (REFUSED, 2)], ids=["fine", "warned", "broken", "config"]
)
def test_the_exit_status_is_that_of_the_worst_finding(facts: Seen, status: int) -> None:
    report = json.loads(json_report(outcome(report_of(facts))))

    assert outcome(report_of(facts)).exit_status == report["exitCode"] == status
    assert report["ok"] is (status == 0)


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        (FINE, "pi-session-mcp demo"),
        (WARNED, "pi-session-mcp doctor"),
        (BROKEN, "pi-session-mcp runtime install"),
        (REFUSED, "pi-session-mcp config check"),
        ({**FINE, configuration.SUBJECT: Status(UNNAMED)}, "pi-session-mcp config init"),
        ({**FINE, configuration.SUBJECT: Status("config_missing")}, "pi-session-mcp config init"),
        ({**FINE, setup_state.SUBJECT: SetupState("ok", ("codex:user",))}, "pi-session-mcp setup --apply codex:user"),
    ],
    ids=["fine", "warned", "broken", "config", "unnamed", "missing", "pending"],
)
def test_the_verdict_ends_with_the_next_command_to_type(facts: Seen, command: str) -> None:
    assert told(facts)[-1].endswith(f"Next: {command}")


def test_the_report_has_exactly_these_members() -> None:
    report = json.loads(json_report(outcome(report_of(REFUSED))))

    assert report.keys() == {"schemaVersion", "ok", "exitCode", "packageVersion", "checks"}
    assert (report["schemaVersion"], report["packageVersion"]) == (1, __version__)
    fine, found = ({"id", "severity", "subject"}, {"id", "severity", "subject", "remediation", "pointer", "rule"})
    assert [check.keys() for check in report["checks"] if check["severity"] == "ok"] == [fine] * (len(TABLE) - 1)
    assert [check.keys() for check in report["checks"] if check["severity"] != "ok"] == [found]


def test_a_file_that_is_no_json_has_line_and_column_instead_of_a_pointer() -> None:
    (found,) = (check for check in json.loads(json_report(outcome(report_of(UNREAD))))["checks"] if "rule" in check)

    assert found.keys() == {"id", "severity", "subject", "remediation", "line", "column", "rule"}
    assert "  place       line 3, column 1" in told(UNREAD)


def test_the_published_schema_is_that_of_the_program_and_pins_every_id() -> None:
    assert doctor_reference.schema() == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    named = {branch["properties"]["id"]["const"] for branch in SCHEMA["$defs"]["check"]["oneOf"]}
    assert named == {row.id for row in TABLE}


@pytest.mark.parametrize(
    ("subject", "facts"),
    [
        (package.SUBJECT, Unseen()),
        (node.SUBJECT, Unseen()),
        (runtime.SDK, Unseen()),
        (agent_directory.FILES, Unseen()),
        (agent_directory.LOCK, Unseen()),
        (configuration.SUBJECT, Unseen()),
        (runtime.SEARCH_TOOLS, Unseen()),
        (setup_state.SUBJECT, Unseen()),
        (setup_state.SUBJECT, SetupState("ok", Unseen())),
    ],
)
def test_a_report_on_what_could_not_be_seen_follows_the_schema(subject: Subject[Any], facts: object) -> None:
    seen = {**FINE, subject: facts}

    VALIDATOR.validate(json.loads(json_report(outcome(report_of(seen)))))
    assert any(line.endswith("could not be checked") for line in told(seen))


def test_no_report_at_all_follows_the_schema_too() -> None:
    VALIDATOR.validate(json.loads(failure_report(ExitStatus.INTERRUPTED, "interrupted")))


def test_a_person_gets_one_line_for_each_check_that_is_fine() -> None:
    lines = told(FINE)

    assert [line.split()[:2] for line in lines[: len(TABLE)]] == [["✓", "ok"]] * len(TABLE)
    assert lines[len(TABLE) :] == ["", "✓ healthy     Nothing is wrong. Next: pi-session-mcp demo"]


def test_the_worst_comes_last_so_that_a_terminal_still_shows_it() -> None:
    marks = [line[0] for line in told(BROKEN) if line[:1].strip()]

    assert marks == sorted(marks, key="✓!✗".index)
    assert marks[-2:] == ["✗", "✗"]


def test_words_are_aligned() -> None:
    starts = {line[14:15].isspace() or line[13:14] != " " for line in told(BROKEN) if line}

    assert starts == {False}


@pytest.mark.parametrize("facts", [FINE, WARNED, BROKEN, REFUSED], ids=["fine", "warned", "broken", "config"])
def test_it_is_readable_in_forty_columns(facts: Seen) -> None:
    long = {**facts, workspaces.SUBJECT: (Workspace("a" * 64, Directory.MISSING),)}

    assert max(len(line) for line in told(long, columns=40)) <= 40
    assert not any("\x1b" in line for line in told(long, columns=40))


def test_text_for_people_says_nothing_that_the_report_does_not() -> None:
    report = json.loads(json_report(outcome(report_of(BROKEN))))
    remedies = {check["remediation"] for check in report["checks"] if check["severity"] != Severity.OK}

    text = " ".join(" ".join(told(BROKEN)).split())
    assert all(remedy in text for remedy in remedies)


def test_where_nothing_is_registered_that_is_the_next_step() -> None:
    assert replace(report_of(FINE), is_registered=False).next_command == "pi-session-mcp setup"
    assert replace(report_of(BROKEN), is_registered=False).next_command == "pi-session-mcp runtime install"


def test_only_an_error_of_the_whole_installation_is_in_the_way_of_a_registration() -> None:
    alone = {
        **FINE,
        workspaces.SUBJECT: (Workspace("w", Directory.MISSING),),
        extensions.SUBJECT: (Pinned("p", "ext", "extension_missing"),),
        profiles.SUBJECT: (Profile("p", refused="unknown_provider"),),
    }

    assert report_of(alone).worst is Severity.ERROR
    assert not report_of(alone).prevents_registration
    assert not report_of(WARNED).prevents_registration
    assert report_of(BROKEN).prevents_registration
    assert report_of({**FINE, agent_directory.FILES: agent_directory.Files(has_place=False)}).prevents_registration
