"""What Claude Code's answers are taken for."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pi_session_mcp.setup.clients.base import ClientOutput, Inspection, Seen
from pi_session_mcp.setup.clients.claude_code import read_inspection
from pi_session_mcp.setup.registration import registration_of
from pi_session_mcp.setup.targets import Target
from tests.unit.setup.clients.recordings import INTENT, Paths, Recorded, gets

CALLS: Final = gets("claude-code")
TARGETS: Final = {scope: Target("claude-code", scope) for scope in ("user", "project", "local")}

OURS: Final = {
    "user": {
        *("get-user", "get-user-subdir", "get-user-elsewhere", "get-user-after-second-add", "get-name-first"),
        *("get-after-add-json", "get-user+local-elsewhere", "get-after-two-local", "get-user+project"),
        *("get-CLAUDE_CONFIG_DIR", "get-without-XDG", "get-LC_ALL=C", "get-FORCE_COLOR=1", "get-NO_COLOR=1"),
        *("get-quiet", "get-CLAUDECODE=1", "get-user-with-broken-mcp-json", "x-get-timeout-1ms"),
        *("get-with-timeout-field", "get-with-ignored-limit"),
        # The text of these is the same as of ours, which is why paths with white space at an end are never registered.
        *("get-trailing-empty-arg", "x-get-serve-newline", "x-get-env-trailing-space"),
    },
    "local": {
        *("get-local", "get-local-after-second-add", "get-project+local"),
        *("get-local-git", "get-local-git-subdir", "get-local-git-worktree"),
    },
    "project": {
        "get-project-alone",
        "get-project",
        "get-project-subdir",
        "get-project-after-second-add",
        "get-project-git-subdir",
    },
}
OF_OTHERS: Final = {
    "user": {
        *("get-other-command", "get-extra-env", "get-no-env", "get-empty-env-value", "get-two-args", "get-no-args"),
        *("get-one-arg-with-space", "get-path-with-space", "get-path-unicode", "get-config-path-with-space"),
        *("get-env-value-newline", "get-env-secretlike", "get-env-expansion", "get-env-order", "get-http"),
        *("get-missing", "get-crashing", "get-hanging", "get-hanging-MCP_TIMEOUT=2000"),
        *("get-slow-6s", "get-garbage", "get-relative-not-on-path", "x-get-leading-empty-arg", "x-get-env-tab"),
        *("x-get-env-escape", "x-get-double-space-path", "x-get-arg-fakes-lines", "x-get-hanging-timeout-1000"),
    },
    "local": {"get-user+local", "get-user+project+local"},
    "project": set[str](),
}
ABSENT: Final = {
    "get-project-alone-absent",
    *("absent-no-servers", "get-absent", "get-absent-with-other-user", "get-absent-with-other-local"),
    *("get-absent-with-other-project", "get-user-after-remove", "get-local-after-remove", "get-project-after-remove"),
    *("get-user-removed", "get-local-removed", "get-project-removed", "get-local-subdir", "get-local-elsewhere"),
    *("get-project-elsewhere", "get-after-env-before-name", "get-without-CLAUDE_CONFIG_DIR"),
    *("get-broken-mcp-json-absent", "get-project-git-root", "absent-no-servers-FORCE_COLOR=1"),
    *("get-absent-with-other-user-FORCE_COLOR=1", "get-absent-with-other-user-FORCE_COLOR=3"),
}
UNSUPPORTED: Final = {"get-json-flag", "get-corrupt-config"}


def expected(label: str, scope: str) -> tuple[Seen, str | None]:
    """What an answer with this label means for a target in `scope`, and the other scope that it shows."""
    for shown in TARGETS:
        if label in OURS[shown] | OF_OTHERS[shown] and shown != scope:
            return Seen.DIVERGENT, shown
    if label in OURS[scope]:
        return Seen.EQUIVALENT, None
    if label in OF_OTHERS[scope]:
        return Seen.DIVERGENT, None
    return (Seen.ABSENT if label in ABSENT else Seen.UNSUPPORTED), None


def inspected(output: ClientOutput, scope: str = "user") -> Seen:
    return read_inspection(output, TARGETS[scope], INTENT).seen


def test_each_recorded_answer_has_been_judged() -> None:
    judged = ABSENT | UNSUPPORTED | set().union(*OURS.values(), *OF_OTHERS.values())

    assert {call.label for call in CALLS} == judged


@pytest.mark.parametrize("scope", TARGETS)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_each_recorded_answer_of_each_version_means_what_its_note_says(call: Recorded, scope: str) -> None:
    target = Target("claude-code", scope, call.arguments[2])

    inspection = read_inspection(call.output, target, INTENT)

    assert (inspection.seen, inspection.other_scope) == expected(call.label, scope)


@pytest.mark.parametrize(
    "paths",
    [
        Paths("/opt/My Dir: x/pi-session-mcp", "/home/o/c.json"),
        Paths('/opt/it\'s "quoted"/pi-session-mcp', "/home/o/  two  spaces.json"),
        Paths("/opt/ünïcode/日本/pi-session-mcp", "/home/o/a=b=c.json"),
    ],
    ids=["colon", "quotes", "unicode"],
)
@pytest.mark.parametrize("call", [call for call in CALLS if call.label in OURS["user"]], ids=str)
def test_paths_are_compared_to_the_last_character(call: Recorded, paths: Paths) -> None:
    intent = registration_of(paths.executable, paths.configuration)
    other = registration_of(paths.executable, paths.configuration + "x")

    same, different = (read_inspection(call.at(paths), TARGETS["user"], wanted) for wanted in (intent, other))
    assert (same.seen, same.registration) == (Seen.EQUIVALENT, intent)
    assert (different.seen, different.registration) == (Seen.DIVERGENT, intent)


@pytest.mark.parametrize("path", ["/a\tb", "/a\nb", "/a\x1b[1mb", "/a ", " /a", "/a\u2028b", "/${HOME}/a", "/a\u200bb"])
def test_an_intent_that_is_shown_like_another_one_is_never_equivalent(path: str) -> None:
    call = next(call for call in CALLS if call.label == "get-user")
    shown = path.replace("\t", " ").replace("\n", " ").replace("\x1b", " ").rstrip()

    inspection = read_inspection(call.at(Paths(shown, "/c.json")), TARGETS["user"], registration_of(path, "/c.json"))

    assert inspection.seen is not Seen.EQUIVALENT


def ours(version: str = "2.1.332", label: str = "get-user") -> str:
    return next(call.output.stdout.decode() for call in CALLS if (call.version, call.label) == (version, label))


@pytest.mark.parametrize(
    ("name", "stdout", "stderr", "code"),
    [
        ("a failure", ours(), "", 1),
        ("a signal", ours(), "", -9),
        ("a warning on stderr", ours(), "Update available\n", 0),
        ("chatter before it", "Update available\n" + ours(), "", 0),
        ("chatter after it", ours() + "bye\n", "", 0),
        ("chatter in the middle", ours().replace("  Type", "warning: old\n  Type"), "", 0),
        ("an empty line in the middle", ours().replace("  Type", "\n  Type"), "", 0),
        ("colours", ours().replace("  Scope", "\x1b[1m  Scope\x1b[0m"), "", 0),
        ("colours in the health alone", ours().replace("✔", "\x1b[32m✔\x1b[0m"), "", 0),
        ("a network's line ends", ours().replace("\n", "\r\n"), "", 0),
        ("no last line end", ours().rstrip("\n"), "", 0),
        ("two answers", ours() * 2, "", 0),
        ("another language", ours().replace("Scope", "Bereich"), "", 0),
        ("an unknown scope", ours().replace("User config", "Managed config"), "", 0),
        ("a scope that it contradicts below", ours().replace("-s user", "-s local"), "", 0),
        ("another name above", ours().replace("pi-session-mcp:", "other:"), "", 0),
        ("another name below", ours().replace("remove pi-session-mcp", "remove other"), "", 0),
        ("half quotes", ours().replace("remove pi-session-mcp", 'remove "pi-session-mcp'), "", 0),
        ("only a part", ours()[:120], "", 0),
        ("nothing", "", "", 0),
        ("JSON", '{"name": "pi-session-mcp"}\n', "", 0),
        ("33 KiB", ours().replace("Connected", "C" * 33 * 1024), "", 0),
        ("absence and more", "", 'No MCP server named "pi-session-mcp". Run it.\nor not\n', 1),
        ("absence of another", "", 'No MCP server named "pi-session". Run `claude mcp add` to add one.\n', 1),
        ("absence without a failure", "", 'No MCP server named "pi-session-mcp". Run it.\n', 0),
        ("absence on stdout", 'No MCP server named "pi-session-mcp". Run it.\n', "", 1),
        ("absence in colours", "", '\x1b[31mNo MCP server named "pi-session-mcp". Run it.\x1b[0m\n', 1),
        ("a silent failure", "", "", 1),
    ],
)
def test_an_answer_in_no_recorded_form_is_unsupported(name: str, stdout: str, stderr: str, code: int) -> None:
    assert inspected(ClientOutput(code, stdout.encode(), stderr.encode())) is Seen.UNSUPPORTED, name


def test_an_answer_that_is_no_text_is_unsupported() -> None:
    assert inspected(ClientOutput(0, ours().encode("utf-16"), b"")) is Seen.UNSUPPORTED


def test_an_answer_is_read_up_to_32_kib_and_not_one_byte_more() -> None:
    room = 32 * 1024 - len(ours().encode())
    longest = ours().replace("Connected", "Connected" + "x" * room)

    assert inspected(ClientOutput(0, longest.encode(), b"")) is Seen.EQUIVALENT
    assert inspected(ClientOutput(0, longest.replace("xx", "xxx", 1).encode(), b"")) is Seen.UNSUPPORTED


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("  Timeout: 60000ms\n", {"timeout": 60000}),
        ("  Timeout: 500ms (ignored: below 1000ms minimum)\n", {"timeout": 500}),
        ("    HTTPS_PROXY=http://proxy:8080\n    no_proxy=a,b\n", {"env": ("HTTPS_PROXY", "no_proxy")}),
        ("    NODE_EXTRA_CA_CERTS=/c.pem\n  Timeout: 1ms\n", {"timeout": 1, "env": ("NODE_EXTRA_CA_CERTS",)}),
    ],
)
def test_what_does_not_change_what_is_started_leaves_it_ours(line: str, settings: dict[str, Any]) -> None:
    text = ours().replace("\n\nTo remove", f"\n{line}\nTo remove")

    inspection = read_inspection(ClientOutput(0, text.encode(), b""), TARGETS["user"], INTENT)

    assert inspection == Inspection(Seen.EQUIVALENT, INTENT, settings=settings)


@pytest.mark.parametrize(
    "line",
    [
        "    LD_PRELOAD=/x.so\n",
        "    NODE_OPTIONS=--require=/x.js\n",
        "    PATH=/x\n",
        "    https_Proxy=x\n",
        "    HTTPS_PROXY=a\n    EXTRA=1\n",
        "    HTTPS_PROXY=a\n    HTTPS_PROXY=b\n",
    ],
)
def test_a_variable_that_could_change_what_is_started_makes_it_anothers(line: str) -> None:
    text = ours().replace("\n\nTo remove", f"\n{line}\nTo remove")

    assert inspected(ClientOutput(0, text.encode(), b"")) is Seen.DIVERGENT


@pytest.mark.parametrize("line", ["  Timeout: ms\n", "  Timeout: 1s\n", "  Timeout: 1ms \n", "  Limit: 1ms\n"])
def test_a_line_that_was_never_recorded_proves_nothing(line: str) -> None:
    text = ours().replace("\n\nTo remove", f"\n{line}\nTo remove")

    inspection = read_inspection(ClientOutput(0, text.encode(), b""), TARGETS["user"], INTENT)
    assert (inspection.seen, inspection.registration) == (Seen.DIVERGENT, None)


def test_the_health_of_the_server_decides_nothing() -> None:
    for status in ("✔ Connected", "✓ Connected", "✘ Failed to connect", "Bereit", "! Needs authentication"):
        output = ours().replace("✔ Connected", status)
        assert inspected(ClientOutput(0, output.encode(), b"")) is Seen.EQUIVALENT


def test_an_earlier_registration_of_ours_can_be_told_from_a_foreign_one() -> None:
    moved = next(call for call in CALLS if call.label == "get-other-command")
    two_arguments = next(call for call in CALLS if call.label == "get-two-args")

    earlier = read_inspection(moved.output, TARGETS["user"], INTENT).registration
    foreign = read_inspection(two_arguments.output, TARGETS["user"], INTENT).registration

    assert earlier == registration_of("<OTHER_EXECUTABLE>", "<CONFIG>")
    assert foreign is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\x1b[31m", "\x1b[39m"),
        ("\x1b[0m\x1b[31m\x1b[31m", ""),
        ("\x1b[0m\x1b[31m\x1b[31m\x1b[31m", "\x1b[39m\x1b[0m"),
        ("\x1b[0m\x1b[31m\x1b[31m", "\x1b[39m\x1b[0m\x07"),
        ("warning\n\x1b[0m\x1b[31m\x1b[31m", "\x1b[39m\x1b[0m"),
    ],
)
def test_a_coloured_absence_counts_only_as_it_was_recorded(before: str, after: str) -> None:
    said = f'{before}No MCP server named "pi-session-mcp". Configured servers: other{after}\n'

    assert inspected(ClientOutput(1, b"", said.encode())) is Seen.UNSUPPORTED
