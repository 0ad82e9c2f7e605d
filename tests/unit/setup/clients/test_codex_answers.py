"""What Codex's answers are taken for."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from pi_session_mcp.setup.clients.base import ClientOutput, Inspection, Seen
from pi_session_mcp.setup.clients.codex import _is_answered, read_inspection
from pi_session_mcp.setup.registration import registration_of
from pi_session_mcp.setup.targets import Target
from tests.unit.setup.clients.recordings import INTENT, Paths, Recorded, gets

CALLS: Final = gets("codex")
JSON_CALLS: Final = [call for call in CALLS if "--json" in call.arguments]
TARGET: Final = Target("codex", "user")

OURS: Final = {
    "get-with-limits",
    *("get-json", "get", "get-subdir", "get-elsewhere", "get-env-before-name", "get-add-over-all-fields"),
    *("get-user-with-project-config-elsewhere", "get-CODEX_HOME", "get-LC_ALL=C", "get-FORCE_COLOR=1"),
    *("get-RUST_LOG=debug", "get-XDG_CONFIG_HOME", "get-CODEX_HOME-under-tmp"),
}
OF_OTHERS: Final = {
    *("get-after-overwrite", "get-after", "get-other-command", "get-extra-env", "get-no-env", "get-empty-env-value"),
    *("get-two-args", "get-one-arg-with-space", "get-no-args", "get-trailing-empty-arg", "get-path-with-space"),
    *("get-path-unicode", "get-config-path-with-space", "get-env-value-newline", "get-env-order"),
    *("get-env-secretlike", "get-http", "get-hanging", "get-missing", "get-all-fields"),
    *("get-project-config-trusted", "get-user-with-project-config", "get-after-remove-user-with-project-config"),
}
ABSENT: Final = {
    *("absent-no-servers", "get-absent", "get-absent-with-other", "get-after-remove", "get-removed"),
    *("get-absent-with-other-RUST_BACKTRACE=1", "get-absent-with-other-RUST_LIB_BACKTRACE=full"),
    *("absent-no-servers-RUST_BACKTRACE=1", "get-project-config-untrusted", "get-without-CODEX_HOME"),
    "get-unknown-key",
}
UNSUPPORTED: Final = {"get-corrupt-config", "get-with-invalid-other-entry", "get-CODEX_HOME-missing"}


def test_each_recorded_answer_has_been_judged() -> None:
    assert {call.label for call in JSON_CALLS} == OURS | OF_OTHERS | ABSENT | UNSUPPORTED


@pytest.mark.parametrize("call", JSON_CALLS, ids=str)
def test_each_recorded_answer_of_each_version_means_what_its_note_says(call: Recorded) -> None:
    seen = read_inspection(call.output, Target("codex", "user", call.arguments[2]), INTENT).seen

    groups = {Seen.EQUIVALENT: OURS, Seen.DIVERGENT: OF_OTHERS, Seen.ABSENT: ABSENT, Seen.UNSUPPORTED: UNSUPPORTED}
    assert call.label in groups[seen], seen


@pytest.mark.parametrize("call", [call for call in CALLS if call not in JSON_CALLS and not call.output.exit_code])
def test_the_text_for_people_proves_nothing(call: Recorded) -> None:
    assert read_inspection(call.output, TARGET, INTENT).seen is Seen.UNSUPPORTED


@pytest.mark.parametrize("path", ["/opt/My Dir: x/p", "/opt/it's/p", "/opt/日本/p", "/opt/a=b/p"])
def test_paths_are_compared_to_the_last_character(path: str) -> None:
    call = next(call for call in CALLS if call.label == "get-json")
    intent, other = registration_of(path, "/c.json"), registration_of(path + "x", "/c.json")

    assert read_inspection(call.at(Paths(path, "/c.json")), TARGET, intent) == Inspection(Seen.EQUIVALENT, intent)
    assert read_inspection(call.at(Paths(path, "/c.json")), TARGET, other) == Inspection(Seen.DIVERGENT, intent)


OURS_AS_JSON: Final = next(call.output.stdout.decode() for call in CALLS if call.label == "get-json")


def changed(**fields: Any) -> str:
    """Our registration with other fields; a name in `transport` goes there."""
    document = json.loads(OURS_AS_JSON)
    document["transport"] |= fields.pop("transport", {})
    return json.dumps(document | fields)


@pytest.mark.parametrize(
    "stdout",
    [
        changed(enabled=False),
        changed(disabled_reason="policy"),
        changed(enabled=1),
        changed(transport={"cwd": "/"}),
        changed(transport={"env_vars": ["TOKEN"]}),
        changed(transport={"env_vars": ["HTTPS_PROXY", "NODE_OPTIONS"]}),
        changed(transport={"env_vars": [{"name": "HTTPS_PROXY"}]}),
        changed(transport={"env_vars": None}),
        changed(tool_timeout_sec=60, transport={"command": "/x"}),
        changed(tool_timeout_sec=60, transport={"args": ["serve", "x"]}),
        changed(transport={"args": []}),
        changed(transport={"env": None}),
        changed(transport={"type": "sse"}),
    ],
)
def test_a_visible_field_that_is_neither_ours_nor_at_its_default_makes_it_divergent(stdout: str) -> None:
    inspection = read_inspection(ClientOutput(0, stdout.encode(), b""), TARGET, INTENT)

    assert inspection.seen is Seen.DIVERGENT


@pytest.mark.parametrize(
    ("stdout", "settings"),
    [
        (changed(enabled_tools=["session_list"]), {"enabled_tools": ("session_list",)}),
        (changed(disabled_tools=[]), {"disabled_tools": ()}),
        (changed(startup_timeout_sec=10), {"startup_timeout_sec": 10}),
        (changed(tool_timeout_sec=0), {"tool_timeout_sec": 0}),
        (changed(tool_timeout_sec=600.5), {"tool_timeout_sec": 600.5}),
        (changed(transport={"env_vars": ["HTTPS_PROXY"]}), {"env_vars": ("HTTPS_PROXY",)}),
        (changed(transport={"env": {**INTENT.environment, "HTTPS_PROXY": "http://p"}}), {"env": ("HTTPS_PROXY",)}),
    ],
)
def test_what_does_not_change_what_is_started_leaves_it_ours(stdout: str, settings: dict[str, Any]) -> None:
    inspection = read_inspection(ClientOutput(0, stdout.encode(), b""), TARGET, INTENT)

    assert inspection == Inspection(Seen.EQUIVALENT, INTENT, settings=settings)


def test_one_that_was_disabled_is_told_from_anothers() -> None:
    text = changed(enabled=False, disabled_reason="x", tool_timeout_sec=1)

    inspection = read_inspection(ClientOutput(0, text.encode(), b""), TARGET, INTENT)

    expected = Inspection(Seen.DIVERGENT, INTENT, is_disabled=True, settings={"tool_timeout_sec": 1})
    assert inspection == expected


@pytest.mark.parametrize(
    ("said", "over"),
    [
        (b"", False),
        (b'{"id":1,"result":{}}\n', False),
        (b'{"id":1,"result":{}}\n{"method":"x","params":{"error":1}}\n{"id":2,"resu', False),
        (b'{"id":1,"result":{}}\nnoise\n{"id":2,"result":{"status":"ok"}}\n', True),
        (b'{"id":2,"error":{"code":-32600}}\n', True),
        (b'{"id":1,"error":{"code":-32600}}\n', True),
    ],
)
def test_the_app_server_is_listened_to_until_it_has_answered(said: bytes, over: bool) -> None:  # noqa: FBT001
    assert _is_answered(said) is over


@pytest.mark.parametrize(
    ("name", "stdout", "stderr", "code"),
    [
        ("a failure", OURS_AS_JSON, "", 1),
        ("chatter before it", "Update available\n" + OURS_AS_JSON, "", 0),
        ("chatter after it", OURS_AS_JSON + "bye", "", 0),
        ("two answers", OURS_AS_JSON * 2, "", 0),
        ("a byte order mark", "\ufeff" + OURS_AS_JSON, "", 0),
        ("a list", f"[{OURS_AS_JSON}]", "", 0),
        ("a key twice", OURS_AS_JSON.replace('"enabled"', '"enabled": true, "enabled"', 1), "", 0),
        ("a comment", OURS_AS_JSON.replace("{", "{ // ours\n", 1), "", 0),
        ("an unknown field", changed(approval="always"), "", 0),
        ("an unknown field in the transport", changed(transport={"umask": 0}), "", 0),
        ("a missing field", OURS_AS_JSON.replace('"enabled": true,', ""), "", 0),
        ("another name", changed(name="other"), "", 0),
        ("no transport", changed(transport={}).replace("transport", "transports"), "", 0),
        (
            "a transport that is no object",
            changed().replace('"transport": {', '"transport": [{').replace("}, ", "}], ", 1),
            "",
            0,
        ),
        ("arguments as text", changed(transport={"args": "serve"}), "", 0),
        ("a number among the arguments", changed(transport={"args": [1]}), "", 0),
        ("a number in the environment", changed(transport={"env": {"A": 1}}), "", 0),
        ("a time limit as text", changed(tool_timeout_sec="60"), "", 0),
        ("a time limit that is true", changed(tool_timeout_sec=True), "", 0),
        ("tools as text", changed(enabled_tools="x"), "", 0),
        ("tools that are numbers", changed(disabled_tools=[1]), "", 0),
        ("33 KiB", changed(disabled_reason="x" * 33 * 1024), "", 0),
        ("nothing", "", "", 0),
        ("absence without a failure", "", "Error: No MCP server named 'pi-session-mcp' found.\n", 0),
        ("absence of another", "", "Error: No MCP server named 'pi-session' found.\n", 1),
        ("absence after chatter", "", "hello\nError: No MCP server named 'pi-session-mcp' found.\n", 1),
        ("absence and more", "", "Error: No MCP server named 'pi-session-mcp' found.\nbye\n", 1),
        ("absence in another language", "", "Fehler: Kein Server 'pi-session-mcp'.\n", 1),
    ],
)
def test_an_answer_in_no_recorded_form_is_unsupported(name: str, stdout: str, stderr: str, code: int) -> None:
    output = ClientOutput(code, stdout.encode(), stderr.encode())

    assert read_inspection(output, TARGET, INTENT).seen is Seen.UNSUPPORTED, name


def test_a_warning_of_codex_about_itself_does_not_hide_an_absence() -> None:
    stderr = b"WARNING: proceeding, even though it is odd\nError: No MCP server named 'pi-session-mcp' found.\n"

    assert read_inspection(ClientOutput(1, b"", stderr), TARGET, INTENT).seen is Seen.ABSENT


@pytest.mark.parametrize(
    "after",
    [
        "\nStack backtrace:\n   0: <unknown>\nError: and another thing\n",
        "\nStack backtrace:\n   0: <unknown>",
        "Stack backtrace:\n   0: <unknown>\n",
        "\nStack backtrace:\n   0: <unknown>\n\nStack backtrace:\n   0: <unknown>\n",
    ],
)
def test_only_a_backtrace_may_follow_what_says_that_nothing_is_there(after: str) -> None:
    said = f"Error: No MCP server named 'pi-session-mcp' found.\n{after}"

    assert read_inspection(ClientOutput(1, b"", said.encode()), TARGET, INTENT).seen is Seen.UNSUPPORTED
