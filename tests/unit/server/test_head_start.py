"""Which waiting calls make a Pi host start while the server is still being loaded."""

from __future__ import annotations

from typing import Any

import pytest

from pi_session_mcp.server.head_start import asked_for
from pi_session_mcp.server.wire.protocol import Call
from tests.support.registries import configuration

CONFIGURATION = configuration(8)
WORKSPACE = next(iter(CONFIGURATION.workspaces))
DEFAULT = CONFIGURATION.execution_profiles[CONFIGURATION.default_profile]


def call(name: str = "pi_session_start", **arguments: Any) -> Call:
    return Call(1, name, arguments, None)


@pytest.mark.parametrize("alias", [*CONFIGURATION.execution_profiles])
def test_the_named_profile_is_the_one(alias: str) -> None:
    profile = CONFIGURATION.execution_profiles[alias]

    assert asked_for([call(workspace=WORKSPACE, executionProfile=alias)], CONFIGURATION) == profile


def test_without_a_name_it_is_the_default_profile() -> None:
    assert asked_for([call(workspace=WORKSPACE)], CONFIGURATION) == DEFAULT


def test_other_calls_before_it_change_nothing() -> None:
    before = [call("pi_capabilities_get"), call("pi_session_list")]

    assert asked_for([*before, call(workspace=WORKSPACE)], CONFIGURATION) == DEFAULT


@pytest.mark.parametrize(
    "asked",
    [
        call(workspace="nowhere"),
        call(workspace=WORKSPACE, executionProfile="nobody"),
        call(workspace=WORKSPACE, executionProfile=None),
        call(workspace=[WORKSPACE]),
        call(),
        call("pi_session_list"),
        Call(1, "pi_session_start", None, None),
    ],
)
def test_a_session_that_cannot_be_had_starts_nothing(asked: Call) -> None:
    assert asked_for([asked], CONFIGURATION) is None


@pytest.mark.parametrize(("before", "found"), [(7, DEFAULT), (8, None)])
def test_only_the_first_eight_calls_are_looked_at(before: int, found: object) -> None:
    assert asked_for([*[call("pi_session_list")] * before, call(workspace=WORKSPACE)], CONFIGURATION) == found
