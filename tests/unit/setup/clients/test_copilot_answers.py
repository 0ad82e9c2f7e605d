"""What Copilot's answers are taken for."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from pi_session_mcp.setup.clients.base import ClientOutput, Inspection, Seen
from pi_session_mcp.setup.clients.copilot import read_inspection
from pi_session_mcp.setup.registration import registration_of
from pi_session_mcp.setup.targets import Target
from tests.unit.setup.clients.recordings import INTENT, Paths, Recorded, gets

CALLS: Final = [call for call in gets("github-copilot-cli") if "--json" in call.arguments]
TARGET: Final = Target("copilot", "user")

OURS: Final = {
    "get-with-limits",
    *("get", "get-json-masked", "get-elsewhere", "get-after-second-add", "get-user+workspace", "get-COPILOT_HOME"),
}
OF_OTHERS: Final = {"get-disabled", "get-two-args", "get-hanging"}
ABSENT: Final = {
    *("get-absent", "get-absent-with-other", "get-removed", "get-workspace-only", "get-without-COPILOT_HOME"),
}


def test_each_recorded_answer_has_been_judged() -> None:
    assert {call.label for call in CALLS} == OURS | OF_OTHERS | ABSENT


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_each_recorded_answer_means_what_its_note_says(call: Recorded) -> None:
    seen = read_inspection(call.output, Target("copilot", "user", call.arguments[2]), INTENT).seen

    assert call.label in {Seen.EQUIVALENT: OURS, Seen.DIVERGENT: OF_OTHERS, Seen.ABSENT: ABSENT}[seen], seen


OURS_AS_JSON: Final = next(call.output.stdout.decode() for call in CALLS if call.label == "get")


def changed(**fields: Any) -> str:
    """Our registration with other fields."""
    document = json.loads(OURS_AS_JSON)
    document["pi-session-mcp"] |= fields
    return json.dumps(document)


def inspected(stdout: str, stderr: str = "", code: int = 0) -> Inspection:
    return read_inspection(ClientOutput(code, stdout.encode(), stderr.encode()), TARGET, INTENT)


@pytest.mark.parametrize("path", ["/opt/My Dir: x/p", "/opt/it's/p", "/opt/日本/p", "/opt/a=b/p"])
def test_paths_are_compared_to_the_last_character(path: str) -> None:
    call = next(call for call in CALLS if call.label == "get")
    intent, other = registration_of(path, "/c.json"), registration_of(path + "x", "/c.json")

    assert read_inspection(call.at(Paths(path, "/c.json")), TARGET, intent) == Inspection(Seen.EQUIVALENT, intent)
    assert read_inspection(call.at(Paths(path, "/c.json")), TARGET, other) == Inspection(Seen.DIVERGENT, intent)


@pytest.mark.parametrize(
    "fields",
    [
        {"timeout": "1"},
        {"timeout": True},
        {"env": {**INTENT.environment, "EXTRA": "1"}},
        {"timeout": 60, "command": "/x"},
        {"enabled": False},
        {"enabled": 1},
        {"type": "http"},
        {"args": ["serve", ""]},
        {"env": {}},
        {"env": {"PI_SESSION_MCP_CONFIG": "***"}},
    ],
)
def test_a_field_that_is_neither_ours_nor_at_its_default_makes_it_divergent(fields: dict[str, Any]) -> None:
    assert inspected(changed(**fields)).seen is Seen.DIVERGENT


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"timeout": 60000}, {"timeout": 60000}),
        ({"tools": []}, {"tools": ()}),
        ({"tools": ["a", "b"], "timeout": 1}, {"tools": ("a", "b"), "timeout": 1}),
        ({"env": {**INTENT.environment, "SSL_CERT_FILE": "/c"}}, {"env": ("SSL_CERT_FILE",)}),
    ],
)
def test_what_does_not_change_what_is_started_leaves_it_ours(fields: dict[str, Any], settings: dict[str, Any]) -> None:
    assert inspected(changed(**fields)) == Inspection(Seen.EQUIVALENT, INTENT, settings=settings)


def test_one_that_was_disabled_is_told_from_anothers() -> None:
    assert inspected(changed(enabled=False)) == Inspection(Seen.DIVERGENT, INTENT, is_disabled=True)


def test_a_registration_of_a_workspace_is_not_taken_for_the_user_s() -> None:
    assert inspected(changed(source="workspace")) == Inspection(Seen.DIVERGENT, other_scope="workspace")


@pytest.mark.parametrize(
    ("name", "stdout", "stderr", "code"),
    [
        ("a failure", OURS_AS_JSON, "", 1),
        ("chatter before it", "Package extraction took 1ms\n" + OURS_AS_JSON, "", 0),
        ("chatter after it", OURS_AS_JSON + "bye", "", 0),
        ("a second server", OURS_AS_JSON.replace("{", '{"other": {},', 1), "", 0),
        ("another server", OURS_AS_JSON.replace("pi-session-mcp", "other"), "", 0),
        ("an entry that is no object", '{"pi-session-mcp": []}', "", 0),
        ("an unknown field", changed(cwd="/"), "", 0),
        ("tools as text", changed(tools="*"), "", 0),
        ("tools that are numbers", changed(tools=[1]), "", 0),
        ("a missing field", OURS_AS_JSON.replace('"enabled": true', '"enable": true'), "", 0),
        ("arguments as text", changed(args="serve"), "", 0),
        ("nothing", "", "", 0),
        ("absence without a failure", "", 'Error: Server "pi-session-mcp" not found.\n', 0),
        ("absence of another", "", 'Error: Server "pi-session" not found.\n', 1),
        ("absence after chatter", "", 'hello\nError: Server "pi-session-mcp" not found.\n', 1),
        ("absence and more", "", 'Error: Server "pi-session-mcp" not found.\nbye\n', 1),
        ("an unreadable file", "", "Error: Failed to load MCP configuration\n", 1),
    ],
)
def test_an_answer_in_no_recorded_form_is_unsupported(name: str, stdout: str, stderr: str, code: int) -> None:
    assert inspected(stdout, stderr, code).seen is Seen.UNSUPPORTED, name


def test_the_words_of_a_first_start_do_not_hide_an_absence() -> None:
    stderr = (
        'Package extraction took 6893ms\nError: Server "pi-session-mcp" not found.\n\nAvailable servers:\n  (none)\n'
    )

    assert inspected("", stderr, 1).seen is Seen.ABSENT
