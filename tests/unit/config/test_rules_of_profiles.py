"""Each rule of an execution profile holds at its limit and is broken one past it; the error names the place."""

from __future__ import annotations

from typing import Any

import pytest

from pi_session_mcp.config.rules import Rule
from pi_session_mcp.errors import ConfigCode
from tests.unit.config.given import (
    a_coding_profile,
    a_document,
    a_profile,
    a_server,
    assert_refused,
    extra_of,
    grants,
    with_profile,
    with_server,
    without,
)

INVALID = ConfigCode.INVALID
PROFILE = ConfigCode.INVALID_EXECUTION_PROFILE
THINKING = ConfigCode.INVALID_THINKING_LEVEL

EXTRA = "/executionProfiles/extra"
KB = f"{EXTRA}/mcpServers/kb"


def test_there_is_at_least_one_profile() -> None:
    assert_refused(a_document(executionProfiles={}), PROFILE, "/executionProfiles", Rule.NO_PROFILE)


@pytest.mark.parametrize("profile", [None, [], "x", 1])
def test_a_profile_is_an_object(profile: Any) -> None:
    assert_refused(with_profile(profile), PROFILE, EXTRA, Rule.OBJECT)


@pytest.mark.parametrize("field", ["permissionProfile", "provider", "model", "thinkingLevel"])
def test_a_profile_needs(field: str) -> None:
    assert_refused(with_profile(without(a_coding_profile(), field)), PROFILE, f"{EXTRA}/{field}", Rule.REQUIRED)


@pytest.mark.parametrize("field", ["permission_profile", "thinking_level", "mcp_servers"])
def test_a_profile_has_only_the_files_own_names(field: str) -> None:
    assert_refused(with_profile(a_coding_profile(**{field: {}})), PROFILE, f"{EXTRA}/{field}", Rule.UNKNOWN_FIELD)


def test_one_profile_is_the_default() -> None:
    none = {"a": without(a_profile(), "default"), "b": a_profile(default=False)}
    assert_refused(a_document(executionProfiles=none), PROFILE, "/executionProfiles", Rule.NO_DEFAULT)

    two = {"b": a_profile(), "c": a_profile(default=False), "a": a_profile(), "d": a_profile()}
    pointer = "/executionProfiles/a/default"
    assert_refused(a_document(executionProfiles=two), PROFILE, pointer, Rule.SECOND_DEFAULT)


def test_the_default_profile_is_read_only() -> None:
    document = a_document(executionProfiles={"only": a_coding_profile(default=True)})
    pointer = "/executionProfiles/only/permissionProfile"
    assert_refused(document, PROFILE, pointer, Rule.DEFAULT_NOT_READ_ONLY)


@pytest.mark.parametrize("value", [None, 0, 1, "true", "yes", [], 1.0])
def test_default_is_true_or_false(value: Any) -> None:
    assert_refused(with_profile(a_profile(default=value)), PROFILE, f"{EXTRA}/default", Rule.TRUE_OR_FALSE)


@pytest.mark.parametrize("value", ["readonly", "Read-Only", "read-only\n", " coding", "", None, 1, []])
def test_the_permission_profile_is_one_of_two(value: Any) -> None:
    document = with_profile(a_profile(default=False, permissionProfile=value))
    assert_refused(document, PROFILE, f"{EXTRA}/permissionProfile", Rule.PERMISSION_PROFILE)


@pytest.mark.parametrize("field", ["provider", "model"])
@pytest.mark.parametrize(
    "value", ["x", "x" * 256, "  x y  ", " " * 400 + "x", "\tx\r\n", "\u2028é \U0001f680", "a/b:c"]
)
def test_a_selection_is_trimmed_text(field: str, value: str) -> None:
    profile = extra_of(with_profile(a_coding_profile(**{field: value})))
    assert getattr(profile, field) == value.strip()


@pytest.mark.parametrize("field", ["provider", "model"])
@pytest.mark.parametrize(
    "value", ["", "  ", "x" * 257, "a\nb", "a\0", "a\x7fb", "a\x85b", "a\u200bb", "\ufeffa", "\u202ea", None, 1, ["x"]]
)
def test_a_selection_has_no_control_or_format_character(field: str, value: Any) -> None:
    assert_refused(with_profile(a_coding_profile(**{field: value})), PROFILE, f"{EXTRA}/{field}", Rule.SELECTION)


@pytest.mark.parametrize("level", ["off", "minimal", "low", "medium", "high", "xhigh", "max"])
def test_a_thinking_level_is_in_the_list(level: str) -> None:
    assert extra_of(with_profile(a_coding_profile(thinkingLevel=level))).thinking_level == level


@pytest.mark.parametrize("level", ["none", "Off", "high ", "max\n", "", None, 1, True, ["low"], {}])
def test_a_thinking_level_outside_the_list_has_a_code_of_its_own(level: Any) -> None:
    document = with_profile(a_coding_profile(thinkingLevel=level))
    assert_refused(document, THINKING, f"{EXTRA}/thinkingLevel", Rule.THINKING_LEVEL)


@pytest.mark.parametrize(
    ("permission", "written", "access"),
    [
        ("read-only", {}, "workspace"),
        ("read-only", {"fileAccess": "workspace"}, "workspace"),
        ("read-only", {"fileAccess": "user"}, "user"),
        ("coding", {}, "user"),
        ("coding", {"fileAccess": "user"}, "user"),
    ],
)
def test_file_access_follows_the_permission_profile(permission: str, written: dict[str, str], access: str) -> None:
    profile = a_coding_profile(permissionProfile=permission, **written)
    assert extra_of(with_profile(profile)).file_access == access


def test_a_coding_profile_has_no_file_access_but_the_users() -> None:
    document = with_profile(a_coding_profile(fileAccess="workspace"))
    assert_refused(document, PROFILE, f"{EXTRA}/fileAccess", Rule.CODING_FILE_ACCESS)


@pytest.mark.parametrize("value", ["all", "User", "", None, 1])
def test_file_access_is_one_of_two(value: Any) -> None:
    assert_refused(with_profile(a_coding_profile(fileAccess=value)), PROFILE, f"{EXTRA}/fileAccess", Rule.FILE_ACCESS)


# External MCP servers


def test_a_profile_has_at_most_8_servers() -> None:
    def profile(servers: int) -> dict[str, Any]:
        return a_coding_profile(mcpServers={f"s{index}": a_server() for index in range(servers)})

    assert len(extra_of(with_profile(profile(8))).mcp_servers) == 8
    assert_refused(with_profile(profile(9)), PROFILE, f"{EXTRA}/mcpServers", Rule.TOO_MANY_SERVERS)


def test_a_profile_grants_at_most_64_tools_in_all() -> None:
    def profile(first: int, second: int) -> dict[str, Any]:
        servers = {"a": a_server(tools=grants(first)), "b": a_server(tools=grants(second))}
        return a_coding_profile(mcpServers=servers)

    assert len(extra_of(with_profile(profile(63, 1))).mcp_servers["a"].tools) == 63
    assert_refused(with_profile(profile(32, 33)), PROFILE, f"{EXTRA}/mcpServers", Rule.TOO_MANY_GRANTS)
    assert_refused(with_profile(profile(65, 1)), PROFILE, f"{EXTRA}/mcpServers", Rule.TOO_MANY_GRANTS)


@pytest.mark.parametrize("value", [None, [], "x", 1])
@pytest.mark.parametrize("field", ["envFrom", "tools"])
def test_the_parts_of_a_server_are_objects(field: str, value: Any) -> None:
    assert_refused(with_server(a_server(**{field: value})), PROFILE, f"{KB}/{field}", Rule.OBJECT)
    assert_refused(with_server(value), PROFILE, KB, Rule.OBJECT)
    assert_refused(with_profile(a_coding_profile(mcpServers=value)), PROFILE, f"{EXTRA}/mcpServers", Rule.OBJECT)


@pytest.mark.parametrize("alias", ["a", "a" * 24, "a0_-"])
def test_the_alias_of_a_server_or_tool_may_be(alias: str) -> None:
    server = a_server(tools={alias: {"name": "x", "readOnly": True}})
    assert (
        extra_of(with_profile(a_coding_profile(mcpServers={alias: server}))).mcp_servers[alias].tools[alias].read_only
    )


@pytest.mark.parametrize(
    ("alias", "shown"), [("a" * 25, "a" * 25), ("A", "?"), ("", "?"), ("a\n", "?"), ("[key]", "?")]
)
def test_the_alias_of_a_server_or_tool_may_not_be(alias: str, shown: str) -> None:
    profile = a_coding_profile(mcpServers={alias: a_server()})
    assert_refused(with_profile(profile), PROFILE, f"{EXTRA}/mcpServers/{shown}", Rule.SHORT_ALIAS)

    server = a_server(tools={alias: {"name": "x", "readOnly": True}})
    assert_refused(with_server(server), PROFILE, f"{KB}/tools/{shown}", Rule.SHORT_ALIAS)


@pytest.mark.parametrize("field", ["command", "tools"])
def test_a_server_needs(field: str) -> None:
    assert_refused(with_server(without(a_server(), field)), PROFILE, f"{KB}/{field}", Rule.REQUIRED)


@pytest.mark.parametrize("field", ["env", "url", "env_from"])
def test_a_server_has_no_other_field(field: str) -> None:
    assert_refused(with_server(a_server(**{field: {}})), PROFILE, f"{KB}/{field}", Rule.UNKNOWN_FIELD)


@pytest.mark.parametrize("command", ["/", "/" + "x" * 4095, "/a b", "/a\n", "/é"])
def test_a_command_is_an_absolute_path(command: str) -> None:
    assert extra_of(with_server(a_server(command=command))).mcp_servers["kb"].command == command


@pytest.mark.parametrize("command", ["", "node", "./node", "~/node", " /node", "/" + "x" * 4096, "/a\0", None, 1, []])
def test_a_command_is_nothing_else(command: Any) -> None:
    assert_refused(with_server(a_server(command=command)), PROFILE, f"{KB}/command", Rule.COMMAND)


def test_a_server_has_at_most_128_arguments() -> None:
    assert extra_of(with_server(a_server(args=["x"] * 128))).mcp_servers["kb"].args == ("x",) * 128
    assert_refused(with_server(a_server(args=["x"] * 129)), PROFILE, f"{KB}/args", Rule.TOO_MANY_ARGUMENTS)


@pytest.mark.parametrize("value", [None, {}, "x", 1])
def test_arguments_and_extensions_are_lists(value: Any) -> None:
    assert_refused(with_server(a_server(args=value)), PROFILE, f"{KB}/args", Rule.LIST)
    assert_refused(with_profile(a_coding_profile(extensions=value)), PROFILE, f"{EXTRA}/extensions", Rule.LIST)


@pytest.mark.parametrize("argument", ["", "x" * 4096, "\n", "--a=b"])
def test_an_argument_is_text(argument: str) -> None:
    assert extra_of(with_server(a_server(args=["x", argument]))).mcp_servers["kb"].args[1] == argument


@pytest.mark.parametrize("argument", ["x" * 4097, "a\0b", None, 1, True, []])
def test_an_argument_is_nothing_else(argument: Any) -> None:
    assert_refused(with_server(a_server(args=["x", argument])), PROFILE, f"{KB}/args/1", Rule.ARGUMENT)


def test_a_server_has_at_most_64_variables() -> None:
    def variables(number: int) -> dict[str, str]:
        return {f"V{index}": "HOME" for index in range(number)}

    assert len(extra_of(with_server(a_server(envFrom=variables(64)))).mcp_servers["kb"].env_from) == 64
    assert_refused(with_server(a_server(envFrom=variables(65))), PROFILE, f"{KB}/envFrom", Rule.TOO_MANY_VARIABLES)


@pytest.mark.parametrize("name", ["A", "_", "A" * 128, "_A0"])
def test_a_variable_may_be(name: str) -> None:
    assert extra_of(with_server(a_server(envFrom={name: name}))).mcp_servers["kb"].env_from == {name: name}


@pytest.mark.parametrize("name", ["", "0A", "a-b", "A" * 129, "A=B", "A\n", "É", "[key]", "Path"])
def test_a_variable_may_not_be(name: str) -> None:
    document = with_server(a_server(envFrom={name: "HOME"}))
    assert_refused(document, PROFILE, f"{KB}/envFrom/{'a-b' if name == 'a-b' else '?'}", Rule.CHILD_VARIABLE)
    assert_refused(with_server(a_server(envFrom={"A": name})), PROFILE, f"{KB}/envFrom/?", Rule.HOST_VARIABLE)


@pytest.mark.parametrize("value", [None, 1, ["HOME"]])
def test_the_name_of_a_host_variable_is_text(value: Any) -> None:
    assert_refused(with_server(a_server(envFrom={"A": value})), PROFILE, f"{KB}/envFrom/?", Rule.HOST_VARIABLE)


def test_a_server_grants_at_least_one_tool() -> None:
    assert_refused(with_server(a_server(tools={})), PROFILE, f"{KB}/tools", Rule.NO_GRANT)


@pytest.mark.parametrize("field", ["name", "readOnly"])
def test_a_grant_needs(field: str) -> None:
    grant = without({"name": "x", "readOnly": True}, field)
    assert_refused(with_server(a_server(tools={"t": grant})), PROFILE, f"{KB}/tools/t/{field}", Rule.REQUIRED)


@pytest.mark.parametrize("name", ["x", "x" * 256, "\n", "é \0"])
def test_a_remote_name_is_text(name: str) -> None:
    server = a_server(tools={"t": {"name": name, "readOnly": True}})
    assert extra_of(with_server(server)).mcp_servers["kb"].tools["t"].name == name


@pytest.mark.parametrize("name", ["", "x" * 257, None, 1])
def test_a_remote_name_is_nothing_else(name: Any) -> None:
    server = a_server(tools={"t": {"name": name, "readOnly": True}})
    assert_refused(with_server(server), PROFILE, f"{KB}/tools/t/name", Rule.REMOTE_NAME)


@pytest.mark.parametrize("value", [None, 1, "true"])
def test_a_grant_says_true_or_false(value: Any) -> None:
    server = a_server(tools={"t": {"name": "x", "readOnly": value}})
    assert_refused(with_server(server), PROFILE, f"{KB}/tools/t/readOnly", Rule.TRUE_OR_FALSE)


def test_a_read_only_profile_grants_only_reading() -> None:
    servers = {"kb": a_server(tools=grants(2) | grants(1, prefix="w", read_only=False))}

    assert not extra_of(with_profile(a_coding_profile(mcpServers=servers))).mcp_servers["kb"].tools["w0"].read_only
    document = with_profile(a_profile(default=False, mcpServers=servers))
    assert_refused(document, PROFILE, f"{KB}/tools/w0/readOnly", Rule.READ_ONLY_GRANT)


def test_a_remote_tool_is_granted_once_in_a_server() -> None:
    twice = {
        "a": {"name": "x", "readOnly": True},
        "b": {"name": "y", "readOnly": True},
        "c": {"name": "x", "readOnly": False},
    }
    assert_refused(with_server(a_server(tools=twice)), PROFILE, f"{KB}/tools/c/name", Rule.REMOTE_NAME_TWICE)

    other_server = a_coding_profile(mcpServers={"a": a_server(), "b": a_server()})
    assert len(extra_of(with_profile(other_server)).mcp_servers) == 2


def test_exposed_names_are_unique_in_a_profile() -> None:
    tool = {"name": "x", "readOnly": True}
    servers = {"a": a_server(tools={"b_c": tool}), "a_b": a_server(tools={"d": tool, "c": {**tool, "name": "y"}})}
    document = with_profile(a_coding_profile(mcpServers=servers))
    assert_refused(document, PROFILE, f"{EXTRA}/mcpServers/a_b/tools/c", Rule.EXPOSED_NAME_TWICE)


# Extensions


def test_a_profile_has_at_most_8_extensions() -> None:
    pins = [f"npm:a{index}@1.0.0" for index in range(9)]

    read = extra_of(with_profile(a_coding_profile(extensions=pins[:8]))).extensions
    assert [pin.written for pin in read] == pins[:8]
    assert_refused(with_profile(a_coding_profile(extensions=pins)), PROFILE, f"{EXTRA}/extensions", Rule.TOO_MANY_PINS)


@pytest.mark.parametrize("pin", ["npm:a@latest", "npm:a@^1.0.0", "npm:a@1.0.0+b", "npm:a@1.0.0\n", "a", "", None, 1])
def test_an_extension_is_an_exact_pin(pin: Any) -> None:
    document = with_profile(a_coding_profile(extensions=["npm:b@1.0.0", pin]))
    assert_refused(document, PROFILE, f"{EXTRA}/extensions/1", Rule.PIN)


def test_a_package_is_pinned_once_in_a_profile() -> None:
    pins = ["npm:@s/a@1.0.0", "npm:a@1.0.0", "npm:@s/a@2.0.0"]
    document = with_profile(a_coding_profile(extensions=pins))
    assert_refused(document, PROFILE, f"{EXTRA}/extensions/2", Rule.PACKAGE_TWICE)
