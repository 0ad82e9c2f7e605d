"""Each rule of the file holds at its limit and is broken one past it; of several errors the first is reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pi_session_mcp.config.rules import Rule
from pi_session_mcp.errors import ConfigCode
from pi_session_mcp.terms.strict_json import Fault
from tests.unit.config.given import (
    a_coding_profile,
    a_document,
    a_profile,
    a_server,
    accepted,
    assert_refused,
    grants,
    refusal_of,
    with_profile,
    without,
)

INVALID = ConfigCode.INVALID
PROFILE = ConfigCode.INVALID_EXECUTION_PROFILE
THINKING = ConfigCode.INVALID_THINKING_LEVEL

EXTRA = "/executionProfiles/extra"
KB = f"{EXTRA}/mcpServers/kb"


@pytest.mark.parametrize("document", [[], "x", 1, True, None, [{}]])
def test_the_file_is_an_object(document: Any) -> None:
    assert_refused(document, INVALID, "", Rule.OBJECT)


@pytest.mark.parametrize("field", ["workspaces", "executionProfiles"])
def test_both_sections_are_required(field: str) -> None:
    assert_refused(without(a_document(), field), INVALID, f"/{field}", Rule.REQUIRED)


@pytest.mark.parametrize("field", ["workspaces", "executionProfiles", "limits", "runtime"])
@pytest.mark.parametrize("value", [None, [], "x", 1, False])
def test_a_section_is_an_object(field: str, value: Any) -> None:
    assert_refused(a_document(**{field: value}), INVALID, f"/{field}", Rule.OBJECT)


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("profiles", "profiles"),
        ("execution_profiles", "execution_profiles"),
        ("max_sessions", "max_sessions"),
        ("command", "command"),
        ("apiKey", "?"),
        ("Limits", "?"),
        ("a/b~c", "?"),
        ("", "?"),
    ],
)
def test_any_other_field_is_refused(field: str, shown: str) -> None:
    assert_refused(a_document(**{field: 1}), INVALID, f"/{shown}", Rule.UNKNOWN_FIELD)


@pytest.mark.parametrize("value", ["./schema.json", "", None, 5, {"a": [1]}])
def test_the_schema_of_an_editor_is_ignored(value: Any) -> None:
    assert accepted(a_document(**{"$schema": value})).default_profile == "safe"


def test_there_may_be_no_workspace() -> None:
    assert accepted(a_document(workspaces={})).workspaces == {}


@pytest.mark.parametrize("alias", ["a", "a" * 64, "a0_-", "z-"])
def test_an_alias_may_be(alias: str) -> None:
    configuration = accepted(a_document(workspaces={alias: "/x"}, executionProfiles={alias: a_profile()}))

    assert (list(configuration.workspaces), configuration.default_profile) == ([alias], alias)


@pytest.mark.parametrize("alias", ["", "A", "0a", "-a", "_a", "a" * 65, "a.b", "a b", "a\n", "\na", "é", "[key]", "?"])
def test_an_alias_may_not_be(alias: str) -> None:
    assert_refused(a_document(workspaces={alias: "/x"}), INVALID, "/workspaces/?", Rule.ALIAS)
    assert_refused(a_document(executionProfiles={alias: a_profile()}), PROFILE, "/executionProfiles/?", Rule.ALIAS)


def test_a_known_field_that_is_no_alias_is_shown_where_an_alias_should_be() -> None:
    assert_refused(a_document(workspaces={"mcpServers": "/x"}), INVALID, "/workspaces/mcpServers", Rule.ALIAS)


@pytest.mark.parametrize("path", ["", "a\0b", "\0", 1, None, True, [], {}, ["/x"]])
def test_a_workspace_is_a_path(path: Any) -> None:
    assert_refused(a_document(workspaces={"a": path}), INVALID, "/workspaces/a", Rule.PATH)


@pytest.mark.parametrize("path", ["", "a\0b", 1, None, []])
def test_pis_agent_directory_is_a_path(path: Any) -> None:
    assert_refused(a_document(piAgentDirectory=path), INVALID, "/piAgentDirectory", Rule.PATH)


@pytest.mark.parametrize("field", ["node", "sdk"])
@pytest.mark.parametrize("path", ["", "node", "./node", "~/node", "/a\0b", None, 1, False])
def test_a_replaced_program_is_an_absolute_path(field: str, path: Any) -> None:
    assert_refused(a_document(runtime={field: path}), INVALID, f"/runtime/{field}", Rule.ABSOLUTE_PATH)


@pytest.mark.parametrize("sessions", [1, 256])
def test_open_sessions_are_limited_from_1_to_256(sessions: int) -> None:
    assert accepted(a_document(limits={"maxSessions": sessions})).max_sessions == sessions


@pytest.mark.parametrize("written", ["0", "257", "-1", "1.0", "1e1", "true", '"8"', "null", "[]", "9" * 64, "1e999"])
def test_open_sessions_are_limited_by_nothing_else(written: str) -> None:
    text = json.dumps(a_document(limits={"maxSessions": 7})).replace("7", written).encode()

    assert_refused(text, INVALID, "/limits/maxSessions", Rule.MAX_SESSIONS)


@pytest.mark.parametrize("section", ["limits", "runtime"])
def test_an_empty_section_changes_nothing_and_an_unknown_field_in_it_is_refused(section: str) -> None:
    assert accepted(a_document(**{section: {}})).max_sessions == 32
    assert_refused(a_document(**{section: {"Other": 1}}), INVALID, f"/{section}/?", Rule.UNKNOWN_FIELD)


# The text


def test_a_repeated_profile_cannot_widen_one() -> None:
    safe, wide = json.dumps(a_profile()), json.dumps(a_coding_profile())
    text = f'{{"workspaces": {{}}, "executionProfiles": {{"safe": {safe}, "safe": {wide}}}}}'.encode()
    assert_refused(text, INVALID, "/executionProfiles/safe", Rule.DUPLICATE_KEY)


def test_a_repeated_key_that_may_hold_anything_is_hidden() -> None:
    assert_refused(b'{"limits": {"sk_LIVE": 1, "sk_LIVE": 2}}', INVALID, "/limits/?", Rule.DUPLICATE_KEY)


def test_a_syntax_error_has_line_and_column_instead_of_a_pointer() -> None:
    refusal = refusal_of(b'{\n "workspaces": {}, // none\n}')

    assert (refusal.code, refusal.pointer, refusal.line, refusal.column) == (INVALID, None, 2, 20)
    assert refusal.to_report() == {"code": "config_invalid", "line": 2, "column": 20, "rule": Rule.NOT_JSON.value}
    assert str(refusal) == f"config_invalid at line 2, column 20: {Rule.NOT_JSON}"


# Which error is reported


def test_the_first_error_in_document_order_is_reported() -> None:
    bad, worse = a_profile(provider=""), a_profile(thinkingLevel="none")
    for first, second, pointer in [("a", "b", "a/provider"), ("b", "a", "b/provider")]:
        document = a_document(executionProfiles={first: bad, second: worse}, workspaces={"A": ""})
        document = {name: document[name] for name in ("executionProfiles", "workspaces")}
        assert_refused(document, PROFILE, f"/executionProfiles/{pointer}", Rule.SELECTION)


def test_fields_are_reported_in_the_files_order_not_the_models() -> None:
    fields = {"thinkingLevel": "none", "provider": "", "permissionProfile": "x", "model": "m"}
    assert_refused(with_profile(fields), THINKING, f"{EXTRA}/thinkingLevel", Rule.THINKING_LEVEL)

    backwards = dict(reversed(fields.items()))
    assert_refused(with_profile(backwards), PROFILE, f"{EXTRA}/permissionProfile", Rule.PERMISSION_PROFILE)


def test_a_missing_field_comes_before_what_is_wrong_inside_the_object() -> None:
    assert_refused({"limits": 1, "workspaces": {}}, INVALID, "/executionProfiles", Rule.REQUIRED)


def test_of_several_broken_agreements_the_first_in_the_file_is_reported() -> None:
    servers = {"kb": a_server(tools=grants(1, read_only=False))}
    pins = ["npm:a@1.0.0", "npm:a@1.0.1"]

    pins_first = {"extensions": pins, "mcpServers": servers, **a_profile(default=False)}
    assert_refused(with_profile(pins_first), PROFILE, f"{EXTRA}/extensions/1", Rule.PACKAGE_TWICE)
    servers_first = {"mcpServers": servers, "extensions": pins, **a_profile(default=False)}
    assert_refused(with_profile(servers_first), PROFILE, f"{KB}/tools/t0/readOnly", Rule.READ_ONLY_GRANT)


def test_every_fault_of_strict_json_is_a_rule() -> None:
    assert {fault.name for fault in Fault} <= {rule.name for rule in Rule}
