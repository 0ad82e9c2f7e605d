"""The shipped JSON Schema is the models', and agrees with the loader wherever a schema can say it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from pi_session_mcp.config.load import ConfigError, interpret, load
from pi_session_mcp.config.schema import generate, load_text, to_text
from tests.unit.config.given import (
    HERE,
    a_coding_profile,
    a_document,
    a_profile,
    a_server,
    grants,
    to_bytes,
    with_profile,
    with_server,
    without,
)

EXAMPLE: Final = Path(__file__).parents[3] / "config.example.json"


@cache
def shipped() -> Draft202012Validator:
    schema = json.loads(load_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def is_loaded(document: Any) -> bool:
    try:
        interpret(to_bytes(document), HERE)
    except ConfigError:
        return False
    return True


def test_the_shipped_schema_is_the_models_own() -> None:
    assert load_text() == to_text(generate()), "run: make generate"


def test_the_example_is_valid_and_is_loaded() -> None:
    assert shipped().is_valid(json.loads(EXAMPLE.read_text(encoding="utf-8")))
    assert load(EXAMPLE).default_profile == "safe-readonly"


def test_the_schema_names_no_place() -> None:
    assert "://" not in load_text().replace("https://json-schema.org/draft/2020-12/schema", "")


ACCEPTED: Final[list[Any]] = [
    a_document(),
    a_document(workspaces={}),
    a_document(**{"$schema": "./x", "limits": {}, "runtime": {}}),
    a_document(limits={"maxSessions": 1}, runtime={"node": "/n", "sdk": "/s"}, piAgentDirectory="x"),
    a_document(limits={"maxSessions": 256}),
    a_document(workspaces={"a" * 64: "~"}),
    with_profile(a_coding_profile(fileAccess="user")),
    with_profile(a_profile(default=False, fileAccess="user")),
    with_profile(a_profile(default=False, fileAccess="workspace")),
    with_profile(a_coding_profile(provider="  x  ", model="x" * 256)),
    with_profile(a_coding_profile(extensions=[f"npm:@a/b{number}@1.0.0-rc.1" for number in range(8)])),
    with_profile(a_coding_profile(mcpServers={f"s{number}": a_server() for number in range(8)})),
    with_server(a_server(args=["x"] * 128, envFrom={"A_0": "_B"})),
    with_server(a_server(command="/" + "x" * 4095, args=["x" * 4096, ""])),
    with_server(a_server(tools=grants(64, read_only=False))),
    with_server(a_server(tools={"a" * 24: {"name": "\nx" * 128, "readOnly": False}})),
]

REFUSED: Final[list[Any]] = [
    [],
    None,
    {},
    without(a_document(), "workspaces"),
    without(a_document(), "executionProfiles"),
    a_document(other=1),
    a_document(execution_profiles={}),
    a_document(executionProfiles={}),
    a_document(executionProfiles=[]),
    a_document(workspaces={"A": "/x"}),
    a_document(workspaces={"a" * 65: "/x"}),
    a_document(workspaces={"a": ""}),
    a_document(workspaces={"a": "x\0y"}),
    a_document(workspaces={"a": None}),
    a_document(limits={"maxSessions": 0}),
    a_document(limits={"maxSessions": 257}),
    a_document(limits={"maxSessions": True}),
    a_document(limits={"maxSessions": "8"}),
    a_document(limits=None),
    a_document(limits={"max_sessions": 1}),
    a_document(runtime={"node": "node"}),
    a_document(runtime={"node": None}),
    a_document(runtime={"other": "/x"}),
    a_document(piAgentDirectory=""),
    a_document(piAgentDirectory=None),
    a_document(executionProfiles={"only": a_coding_profile(default=True)}),
    *[with_profile(without(a_coding_profile(), name)) for name in ("permissionProfile", "provider", "thinkingLevel")],
    with_profile(a_coding_profile(other=1)),
    with_profile(a_coding_profile(default=0)),
    with_profile(a_coding_profile(permissionProfile="x")),
    with_profile(a_coding_profile(thinkingLevel="none")),
    with_profile(a_coding_profile(provider=" ")),
    with_profile(a_coding_profile(model="x" * 257)),
    with_profile(a_coding_profile(fileAccess="workspace")),
    with_profile(a_coding_profile(fileAccess=None)),
    with_profile(a_coding_profile(extensions=["npm:a@latest"])),
    with_profile(a_coding_profile(extensions=["npm:a@1.0.0+b"])),
    with_profile(a_coding_profile(extensions=["npm:" + "a" * 250 + "@1.0.0"])),
    with_profile(a_coding_profile(extensions=[f"npm:a{number}@1.0.0" for number in range(9)])),
    with_profile(a_coding_profile(mcpServers={f"s{number}": a_server() for number in range(9)})),
    with_profile(a_coding_profile(mcpServers={"a" * 25: a_server()})),
    with_profile(a_profile(default=False, mcpServers={"kb": a_server(tools=grants(1, read_only=False))})),
    with_server(without(a_server(), "command")),
    with_server(without(a_server(), "tools")),
    with_server(a_server(env={})),
    with_server(a_server(command="node")),
    with_server(a_server(command="/" + "x" * 4096)),
    with_server(a_server(args=["x"] * 129)),
    with_server(a_server(args=["x" * 4097])),
    with_server(a_server(args={})),
    with_server(a_server(envFrom={"a": "B"})),
    with_server(a_server(envFrom={"A": "b"})),
    with_server(a_server(envFrom={f"V{number}": "A" for number in range(65)})),
    with_server(a_server(tools={})),
    with_server(a_server(tools={"t": {"name": "x"}})),
    with_server(a_server(tools={"t": {"name": "", "readOnly": True}})),
    with_server(a_server(tools={"t": {"name": "x" * 257, "readOnly": True}})),
    with_server(a_server(tools={"t": {"name": "x", "readOnly": 1}})),
    with_server(a_server(tools={"T": {"name": "x", "readOnly": True}})),
]


@pytest.mark.parametrize("document", ACCEPTED, ids=range(len(ACCEPTED)))
def test_loader_and_schema_accept(document: Any) -> None:
    assert (is_loaded(document), shipped().is_valid(document)) == (True, True)


@pytest.mark.parametrize("document", REFUSED, ids=range(len(REFUSED)))
def test_loader_and_schema_refuse(document: Any) -> None:
    assert (is_loaded(document), shipped().is_valid(document)) == (False, False)


BEYOND_A_SCHEMA: Final[dict[str, Any]] = {
    "no default": a_document(executionProfiles={"a": a_profile(default=False)}),
    "two defaults": a_document(executionProfiles={"a": a_profile(), "b": a_profile()}),
    "format character": with_profile(a_coding_profile(model="a\u200bb")),
    "65 grants": with_server(a_server(tools=grants(65))),
    "remote name twice": with_server(
        a_server(tools={"a": {"name": "x", "readOnly": True}, "b": {"name": "x", "readOnly": True}})
    ),
    "package twice": with_profile(a_coding_profile(extensions=["npm:a@1.0.0", "npm:a@2.0.0"])),
    "1.0": to_bytes(a_document(limits={"maxSessions": 7})).replace(b"7", b"7.0"),
}


@pytest.mark.parametrize("document", BEYOND_A_SCHEMA.values(), ids=BEYOND_A_SCHEMA)
def test_the_loader_refuses_more_than_a_schema_can(document: Any) -> None:
    assert not is_loaded(document)
    assert shipped().is_valid(json.loads(to_bytes(document)))
