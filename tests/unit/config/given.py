"""Small configurations to start from, and what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pi_session_mcp.config.load import ConfigError, interpret

if TYPE_CHECKING:
    from pi_session_mcp.config.model import Configuration, ExecutionProfile
    from pi_session_mcp.config.rules import Rule
    from pi_session_mcp.errors import ConfigCode

HERE: Final = Path("/etc/pi-session-mcp")


def a_profile(**changes: Any) -> dict[str, Any]:
    """A valid default profile with some fields changed."""
    plain = {"default": True, "permissionProfile": "read-only", "provider": "p", "model": "m", "thinkingLevel": "off"}
    return {**plain, **changes}


def a_coding_profile(**changes: Any) -> dict[str, Any]:
    """A valid coding profile with some fields changed."""
    return a_profile(**{"default": False, "permissionProfile": "coding", **changes})


def a_server(**changes: Any) -> dict[str, Any]:
    """A valid external MCP server with some fields changed."""
    return {"command": "/bin/kb", "tools": {"search": {"name": "search", "readOnly": True}}, **changes}


def a_document(**changes: Any) -> dict[str, Any]:
    """A valid file with some top-level fields changed."""
    return {"workspaces": {"here": "/srv/here"}, "executionProfiles": {"safe": a_profile()}, **changes}


def with_profile(profile: Any) -> dict[str, Any]:
    """A file with a valid default profile and then `profile` as `extra`."""
    return a_document(executionProfiles={"safe": a_profile(), "extra": profile})


def with_server(server: Any) -> dict[str, Any]:
    """A file whose `extra` profile, a coding one, has the one server `kb`."""
    return with_profile(a_coding_profile(mcpServers={"kb": server}))


def to_bytes(document: Any) -> bytes:
    """What a file with `document` holds."""
    return document if isinstance(document, bytes) else json.dumps(document).encode()


def accepted(document: Any) -> Configuration:
    """The configuration that `document` says."""
    return interpret(to_bytes(document), HERE)


def extra_of(document: Any) -> ExecutionProfile:
    """The profile `extra` of an accepted document."""
    return accepted(document).execution_profiles["extra"]


def refusal_of(document: Any) -> ConfigError:
    """The error with which `document` is refused."""
    with pytest.raises(ConfigError) as caught:
        interpret(to_bytes(document), HERE)
    return caught.value


def without(object_: dict[str, Any], field: str) -> dict[str, Any]:
    """`object_` less one field."""
    return {name: value for name, value in object_.items() if name != field}


def grants(number: int, *, prefix: str = "t", read_only: bool = True) -> dict[str, Any]:
    """Tools of a server, all different."""
    return {f"{prefix}{index}": {"name": f"{prefix}{index}", "readOnly": read_only} for index in range(number)}


def assert_refused(document: Any, code: ConfigCode, pointer: str, rule: Rule) -> None:
    """`document` is refused with exactly this, and the error keeps nothing else."""
    refusal = refusal_of(document)
    assert (refusal.code, refusal.pointer, refusal.rule) == (code, pointer, rule)
    assert (refusal.line, refusal.column, refusal.__cause__, refusal.__context__) == (None, None, None, None)
    assert refusal.to_report() == {"code": code.value, "pointer": pointer, "rule": rule.value}
