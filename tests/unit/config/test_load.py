"""A valid file becomes one immutable configuration; where the file is, and whose variable says so."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ValidationError

from pi_session_mcp.config.load import ConfigError, config_path_for_operator, config_path_for_server, load
from pi_session_mcp.config.model import ExecutionProfile, Grant, McpServer, RuntimeOverride
from pi_session_mcp.config.operator_environment import Environment
from pi_session_mcp.config.rules import Rule
from pi_session_mcp.errors import ConfigCode
from pi_session_mcp.terms.pin import Pin
from pi_session_mcp.terms.tool_names import exposed_name
from tests.unit.config.given import a_coding_profile, a_document, a_profile, a_server, accepted, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FULL = a_document(
    executionProfiles={
        "safe": a_profile(mcpServers={"kb": a_server(args=["x"], envFrom={"A": "B"})}, extensions=["npm:a@1.0.0"]),
        "wide": a_coding_profile(),
    },
    piAgentDirectory="agent",
    runtime={"node": "/opt/node", "sdk": "/opt/sdk"},
    limits={"maxSessions": 3},
)


def test_everything_in_the_file_is_there() -> None:
    configuration = accepted(FULL)

    assert configuration.workspaces == {"here": Path("/srv/here")}
    assert configuration.default_profile == "safe"
    assert configuration.max_sessions == 3
    assert configuration.pi_agent_directory == Path("/etc/pi-session-mcp/agent")
    assert configuration.runtime == RuntimeOverride(node=Path("/opt/node"), sdk=Path("/opt/sdk"))
    grant = Grant(name="search", read_only=True)
    server = McpServer(command="/bin/kb", args=("x",), env_from={"A": "B"}, tools={"search": grant})
    assert configuration.execution_profiles["safe"] == ExecutionProfile(
        default=True,
        permission_profile="read-only",
        provider="p",
        model="m",
        thinking_level="off",
        file_access="workspace",
        mcp_servers={"kb": server},
        extensions=(Pin("a", "1.0.0"),),
    )


def test_what_is_left_out_has_its_default() -> None:
    configuration = accepted(a_document())

    assert (configuration.max_sessions, configuration.pi_agent_directory) == (32, None)
    assert configuration.runtime == RuntimeOverride(node=None, sdk=None)
    profile = configuration.execution_profiles["safe"]
    assert (profile.mcp_servers, profile.extensions) == ({}, ())


def parts_of(value: Any) -> list[Any]:
    """`value` and everything in it."""
    if isinstance(value, BaseModel):
        inside = [getattr(value, name) for name in type(value).model_fields]
    elif dataclasses.is_dataclass(value):
        inside = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, MappingProxyType):
        inside = list(value.values())
    else:
        inside = list(value) if isinstance(value, tuple) else []
    return [value, *(part for each in inside for part in parts_of(each))]


def test_nothing_in_a_configuration_can_be_changed() -> None:
    configuration = accepted(FULL)

    kinds = {type(part) for part in parts_of(configuration)}
    assert not kinds & {dict, list, set, bytearray}
    assert {MappingProxyType, ExecutionProfile, McpServer, Grant, RuntimeOverride} < kinds
    with pytest.raises(ValidationError):
        configuration.execution_profiles["safe"].provider = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        configuration.max_sessions = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        configuration.workspaces["here"] = Path("/")  # type: ignore[index]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("../code/my project", "code/my project"),
        (".", "etc"),
        ("./a//b/", "etc/a/b"),
        ("~/a", "etc/~/a"),
        ("$HOME", "etc/$HOME"),
        ("a/../../b", "b"),
    ],
)
def test_a_relative_path_counts_from_the_files_directory(written: str, meant: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "file").write_bytes(to_bytes(a_document(workspaces={"a": written}, piAgentDirectory=written)))

    configuration = load(tmp_path / "etc" / "file")

    assert configuration.workspaces["a"] == configuration.pi_agent_directory == tmp_path / meant


def test_an_absolute_path_stays_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "file").write_bytes(to_bytes(a_document(workspaces={"a": str(tmp_path / "link"), "b": "link"})))

    configuration = load(tmp_path / "file")

    assert configuration.workspaces == {"a": tmp_path / "link", "b": tmp_path / "link"}


@pytest.mark.parametrize(
    "rewritten",
    [
        lambda plain: b"\xef\xbb\xbf" + plain,
        lambda plain: plain.replace(b"\n", b"\r\n"),
        lambda plain: b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n") + b"\r\n",
    ],
    ids=["mark", "crlf", "both"],
)
def test_the_same_file_from_another_editor_differs_only_in_its_fingerprint(
    rewritten: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    plain = json.dumps(FULL, indent=2).encode()
    (tmp_path / "plain").write_bytes(plain)
    (tmp_path / "other").write_bytes(rewritten(plain))

    first, second = load(tmp_path / "plain"), load(tmp_path / "other")

    assert first.fingerprint != second.fingerprint
    assert dataclasses.replace(second, fingerprint=first.fingerprint) == first


def test_the_fingerprint_is_of_the_exact_bytes(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + to_bytes(a_document()) + b"\r\n "
    (tmp_path / "file").write_bytes(text)

    assert load(tmp_path / "file").fingerprint == "sha256:" + hashlib.sha256(text).hexdigest()


def test_an_exposed_name_is_made_of_both_aliases() -> None:
    assert exposed_name("knowledge", "search") == "mcp_knowledge_search"


# The variable


def refused_path(find: Callable[[], Path]) -> tuple[ConfigCode, str, str | None]:
    with pytest.raises(ConfigError) as caught:
        find()
    return caught.value.code, caught.value.rule, caught.value.pointer


@pytest.mark.parametrize("variable", [{}, {"PI_SESSION_MCP_CONFIG": ""}, {"pi_session_mcp_config": "/x"}])
def test_the_variable_is_required_by_the_server_and_without_a_default_file_by_all(
    variable: Mapping[str, str], tmp_path: Path
) -> None:
    environ = {**variable, "HOME": str(tmp_path)}
    expected = (ConfigCode.PATH_REQUIRED, Rule.VARIABLE_UNSET, "")
    usual = tmp_path / ".config" / "pi-session-mcp" / "config.json"

    assert refused_path(lambda: config_path_for_operator(environ, tmp_path)) == expected
    usual.parent.mkdir(parents=True)
    usual.write_text("{}")
    assert refused_path(lambda: config_path_for_server(environ)) == expected
    assert config_path_for_operator(environ, tmp_path) == usual


@pytest.mark.parametrize(
    "relative", ["config.json", "./config.json", "../x", "~/config.json", " /x", "null", '{"a":1}']
)
def test_a_relative_path_is_for_operators_only(relative: str, tmp_path: Path) -> None:
    environ = {"PI_SESSION_MCP_CONFIG": relative}

    assert config_path_for_operator(environ, tmp_path) == tmp_path / relative
    expected = (ConfigCode.PATH_REQUIRED, Rule.VARIABLE_RELATIVE, "")
    assert refused_path(lambda: config_path_for_server(environ)) == expected


@pytest.mark.parametrize("absolute", ["/etc/config.json", "/a b/é", "/not\udcffutf-8", "/a/../b", "/ "])
def test_server_and_operator_agree_on_an_absolute_path(absolute: str, tmp_path: Path) -> None:
    environ = {"PI_SESSION_MCP_CONFIG": absolute, "OTHER": "/x"}

    assert config_path_for_server(environ) == config_path_for_operator(environ, tmp_path) == Path(absolute)


def test_no_other_source_feeds_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PI_SESSION_MCP_CONFIG=/from/env/file\nCONFIG=/from/env/file\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONFIG", "/from/the/field")
    monkeypatch.setenv("pi_session_mcp_config", "/from/another/case")

    assert Environment().path == ""
    assert Environment(config="/from/python").path == ""
    monkeypatch.setenv("PI_SESSION_MCP_CONFIG", "/from/the/variable")
    assert Environment().path == "/from/the/variable"


def test_the_given_variables_take_the_place_of_the_processs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_SESSION_MCP_CONFIG", "/from/the/process")

    assert config_path_for_operator({"PI_SESSION_MCP_CONFIG": "/given"}, tmp_path) == Path("/given")
    nothing = {"HOME": str(tmp_path)}
    assert refused_path(lambda: config_path_for_operator(nothing, tmp_path))[0] is ConfigCode.PATH_REQUIRED


def test_loading_imports_no_settings_library_and_no_server() -> None:
    program = (
        "import sys, pi_session_mcp.config.load\n"
        "unwanted = {'pydantic_settings', 'dotenv', 'mcp', 'typer', 'rich', 'anyio'}\n"
        "sys.exit(bool(unwanted & sys.modules.keys()))"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
