"""Which waiting messages make a Pi host start while the SDK is still being imported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.server.head_start import asked_for
from tests.support.registries import configuration

if TYPE_CHECKING:
    from pi_session_mcp.server.frames import Line

CONFIGURATION = configuration(8)
WORKSPACE = next(iter(CONFIGURATION.workspaces))
DEFAULT = CONFIGURATION.execution_profiles[CONFIGURATION.default_profile]


def call(name: str = "pi_session_start", **arguments: Any) -> Line:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def message(**members: Any) -> Line:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


@pytest.mark.parametrize("alias", [*CONFIGURATION.execution_profiles])
def test_the_named_profile_is_the_one(alias: str) -> None:
    profile = CONFIGURATION.execution_profiles[alias]

    assert asked_for([call(workspace=WORKSPACE, executionProfile=alias)], CONFIGURATION) == profile


def test_without_a_name_it_is_the_default_profile() -> None:
    assert asked_for([call(workspace=WORKSPACE)], CONFIGURATION) == DEFAULT


def test_other_messages_before_it_change_nothing() -> None:
    before = [
        b"no json",
        None,
        call("pi_capabilities_get"),
        message(method="notifications/x"),
        message(id=3, result={}),
    ]

    assert asked_for([*before, call(workspace=WORKSPACE)], CONFIGURATION) == DEFAULT


@pytest.mark.parametrize(
    "line",
    [
        call(workspace="nowhere"),
        call(workspace=WORKSPACE, executionProfile="nobody"),
        call(workspace=WORKSPACE, executionProfile=None),
        call(workspace=[WORKSPACE]),
        call(),
        call("pi_session_list"),
        message(id=1, method="tools/call"),
        message(id=1, method="tools/call", params={"name": "pi_session_start", "arguments": [WORKSPACE]}),
        message(id=1, method="pi_session_start", params={"workspace": WORKSPACE}),
        message(method="tools/call", params={"name": "pi_session_start", "arguments": {"workspace": WORKSPACE}}),
        b"no json",
        None,
    ],
)
def test_a_session_that_cannot_be_had_starts_nothing(line: Line) -> None:
    assert asked_for([line], CONFIGURATION) is None


@pytest.mark.parametrize(("before", "found"), [(7, DEFAULT), (8, None)])
def test_only_the_first_eight_messages_are_looked_at(before: int, found: object) -> None:
    assert asked_for([*[call("pi_session_list")] * before, call(workspace=WORKSPACE)], CONFIGURATION) == found
