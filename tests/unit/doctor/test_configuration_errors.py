"""Every rule of the configuration is reported alike by the doctor, by `config check` and by the server's start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.cli.operator_file import refusal
from pi_session_mcp.config.errors import ConfigError
from pi_session_mcp.config.load import config_path_for_operator, config_path_for_server, load
from pi_session_mcp.config.rules import Rule
from pi_session_mcp.doctor.checks import examine
from pi_session_mcp.doctor.subjects.configuration import CONFIG_INVALID
from tests.support.installation import Installation
from tests.unit.config.given import (
    a_coding_profile,
    a_document,
    a_profile,
    a_server,
    to_bytes,
    with_profile,
    with_server,
)

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "CANARY"


def _granting(*names: str, read_only: bool = True) -> dict[str, Any]:
    return {f"t{place}": {"name": name, "readOnly": read_only} for place, name in enumerate(names)}


def _many_grants() -> dict[str, Any]:
    names = [f"n{number}" for number in range(33)]
    return {alias: a_server(tools=_granting(*names)) for alias in ("ka", "kb")}


BREACHES: dict[Rule, Any] = {
    Rule.FILE_TOO_LARGE: b" " * (1024 * 1024 + 1),
    Rule.NOT_UTF8: json.dumps(a_document()).encode("utf-16"),
    Rule.NOT_JSON: to_bytes(a_document()) + b"// CANARY",
    Rule.TOO_DEEP: b"[" * 33 + b"]" * 33,
    Rule.NUMBER_TOO_LONG: b'{"limits": {"maxSessions": ' + b"9" * 65 + b"}}",
    Rule.LONE_SURROGATE: b'{"CANARY": "\\ud800"}',
    Rule.DUPLICATE_KEY: b'{"workspaces": {}, "workspaces": {}}',
    Rule.OBJECT: [SECRET],
    Rule.LIST: with_profile(a_coding_profile(extensions=SECRET)),
    Rule.REQUIRED: {"workspaces": {}},
    Rule.UNKNOWN_FIELD: a_document(CANARY=SECRET),
    Rule.ALIAS: a_document(workspaces={SECRET: "x"}),
    Rule.PATH: a_document(workspaces={"here": ""}),
    Rule.ABSOLUTE_PATH: a_document(runtime={"node": SECRET}),
    Rule.MAX_SESSIONS: a_document(limits={"maxSessions": 257}),
    Rule.NO_PROFILE: a_document(executionProfiles={}),
    Rule.NO_DEFAULT: a_document(executionProfiles={"safe": a_profile(default=False)}),
    Rule.SECOND_DEFAULT: with_profile(a_profile()),
    Rule.DEFAULT_NOT_READ_ONLY: a_document(executionProfiles={"safe": a_coding_profile(default=True)}),
    Rule.TRUE_OR_FALSE: with_profile(a_profile(default=SECRET)),
    Rule.PERMISSION_PROFILE: with_profile(a_profile(permissionProfile=SECRET)),
    Rule.SELECTION: with_profile(a_profile(default=False, model="")),
    Rule.THINKING_LEVEL: with_profile(a_profile(default=False, thinkingLevel=SECRET)),
    Rule.FILE_ACCESS: with_profile(a_profile(default=False, fileAccess=SECRET)),
    Rule.CODING_FILE_ACCESS: with_profile(a_coding_profile(fileAccess="workspace")),
    Rule.TOO_MANY_SERVERS: with_profile(a_coding_profile(mcpServers={f"k{n}": a_server() for n in range(9)})),
    Rule.TOO_MANY_GRANTS: with_profile(a_coding_profile(mcpServers=_many_grants())),
    Rule.SHORT_ALIAS: with_profile(a_coding_profile(mcpServers={SECRET: a_server()})),
    Rule.COMMAND: with_server(a_server(command=SECRET)),
    Rule.TOO_MANY_ARGUMENTS: with_server(a_server(args=[SECRET] * 129)),
    Rule.ARGUMENT: with_server(a_server(args=[SECRET + "\0"])),
    Rule.TOO_MANY_VARIABLES: with_server(a_server(envFrom={f"V{n}": "V" for n in range(65)})),
    Rule.CHILD_VARIABLE: with_server(a_server(envFrom={"canary": "V"})),
    Rule.HOST_VARIABLE: with_server(a_server(envFrom={"V": "canary"})),
    Rule.NO_GRANT: with_server(a_server(tools={})),
    Rule.REMOTE_NAME: with_server(a_server(tools=_granting(""))),
    Rule.REMOTE_NAME_TWICE: with_server(a_server(tools=_granting(SECRET, SECRET))),
    Rule.READ_ONLY_GRANT: with_profile(
        a_profile(default=False, mcpServers={"kb": a_server(tools=_granting(SECRET, read_only=False))})
    ),
    Rule.EXPOSED_NAME_TWICE: with_profile(
        a_coding_profile(
            mcpServers={
                "a": a_server(tools={"b_c": {"name": "x", "readOnly": True}}),
                "a_b": a_server(tools={"c": {"name": "x", "readOnly": True}}),
            }
        )
    ),
    Rule.TOO_MANY_PINS: with_profile(a_coding_profile(extensions=[f"npm:p{n}@1.0.0" for n in range(9)])),
    Rule.PIN: with_profile(a_coding_profile(extensions=[SECRET])),
    Rule.PACKAGE_TWICE: with_profile(a_coding_profile(extensions=["npm:p@1.0.0", "npm:p@1.0.1"])),
}
WITHOUT_A_FILE = {Rule.VARIABLE_UNSET, Rule.VARIABLE_RELATIVE, Rule.FILE_ABSENT, Rule.FILE_UNREADABLE}
"""Those of `config_missing` and `config_unreadable`."""


def test_every_rule_is_broken_here() -> None:
    assert BREACHES.keys() | WITHOUT_A_FILE == set(Rule)


@pytest.mark.parametrize("rule", BREACHES, ids=lambda rule: rule.name.lower())
def test_each_rule_is_reported_alike_by_doctor_config_check_and_serve(rule: Rule, tmp_path: Path) -> None:
    here = Installation(tmp_path)
    here.config.write_bytes(to_bytes(BREACHES[rule]))

    at_start = _refusal(config_path_for_server(here.environ)).to_report()
    checked = refusal(_refusal(config_path_for_operator(here.environ, here.cwd))).members
    (found,) = (check for check in examine(here.examined()).checks if check.row is CONFIG_INVALID)

    members = found.members()
    assert members["rule"] == rule.value
    assert checked == at_start
    places = {"pointer", "line", "column", "rule"}
    assert {k: v for k, v in members.items() if k in places} == {k: v for k, v in at_start.items() if k in places}
    assert SECRET not in json.dumps(members)


def _refusal(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        load(path)
    return refused.value
