"""A server's environment is a small fixed set and what the operator named."""

from __future__ import annotations

import pytest
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS

from pi_session_mcp.bridge.child_environment import INHERITED, VariableMissing, child_environment

HOST = {"PATH": "/bin", "HOME": "/home/x", "TERM": "() { :; }", "SECRET": "canary", "TOKEN": "value", "EMPTY": ""}


def test_the_fixed_set_is_that_of_the_sdk() -> None:
    assert list(INHERITED) == DEFAULT_INHERITED_ENV_VARS


def test_nothing_else_is_inherited_and_no_shell_function() -> None:
    assert child_environment(HOST, {}) == {"PATH": "/bin", "HOME": "/home/x"}


def test_named_variables_get_their_values_under_their_own_names() -> None:
    given = child_environment(HOST, {"API_KEY": "TOKEN", "PATH": "EMPTY"})
    assert given == {"PATH": "", "HOME": "/home/x", "API_KEY": "value"}


def test_a_named_variable_that_is_not_set_is_told() -> None:
    with pytest.raises(VariableMissing):
        child_environment(HOST, {"API_KEY": "TOKEN", "OTHER": "NOWHERE"})
