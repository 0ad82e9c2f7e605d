"""What can be named on the command line, and what is registered there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.setup.registration import Registration, is_plain, registration_of
from pi_session_mcp.setup.targets import ALL_TARGETS, TargetInvalid, parse


def test_every_target_is_parsed_in_both_forms() -> None:
    assert len(ALL_TARGETS) == 5
    for target in ALL_TARGETS:
        assert parse(target.short) == parse(str(target)) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "codex",
        "codex:",
        "codex:local",
        "claude:user",
        "codex:user:other",
        "codex:user:pi-session-mcp:",
        "CODEX:user",
    ],
)
def test_anything_else_is_no_target_and_the_valid_ones_are_named(text: str) -> None:
    with pytest.raises(TargetInvalid) as refused:
        parse(text)
    assert "codex:user" in refused.value.valid
    assert text not in str(refused.value) or not text


def test_equal_registrations_have_equal_fingerprints_whatever_the_order() -> None:
    one = Registration("/bin/x", ("serve",), {"A": "1", "B": "2"})
    other = Registration("/bin/x", ("serve",), {"B": "2", "A": "1"})
    assert one.fingerprint() == other.fingerprint()


@given(st.tuples(st.text(), st.lists(st.text()), st.dictionaries(st.text(), st.text())), st.data())
def test_different_registrations_have_different_fingerprints(
    parts: tuple[str, list[str], dict[str, str]], data: st.DataObject
) -> None:
    others = data.draw(st.tuples(st.text(), st.lists(st.text()), st.dictionaries(st.text(), st.text())))
    one, other = (Registration(command, tuple(words), variables) for command, words, variables in (parts, others))
    assert (one.fingerprint() == other.fingerprint()) == (parts == others)


def test_ours_is_the_command_with_serve_and_one_variable() -> None:
    ours = registration_of("/bin/pi-session-mcp", "/etc/config.json")
    assert (ours.arguments, dict(ours.environment)) == (("serve",), {"PI_SESSION_MCP_CONFIG": "/etc/config.json"})


@pytest.mark.parametrize(("path", "plain"), [("/a b/ü", True), ("/a\tb", False), ("/a ", False), ("/a\ud800", False)])
def test_a_path_that_a_client_would_show_otherwise_is_not_plain(path: str, plain: bool) -> None:  # noqa: FBT001
    assert is_plain(path) == plain
