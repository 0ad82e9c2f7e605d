"""A pin is one exact version of one npm package, and nothing that only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.terms.pin import MAX_PIN_CHARACTERS, Pin, parse


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("npm:pi-cursor-sdk@0.5.3", "pi-cursor-sdk", "0.5.3"),
        ("npm:@scope/ext@1.2.3", "@scope/ext", "1.2.3"),
        ("npm:a@0.0.0", "a", "0.0.0"),
        ("npm:0.a_b~c-d@10.20.30", "0.a_b~c-d", "10.20.30"),
        ("npm:@0s.~_-/9x@1.0.0", "@0s.~_-/9x", "1.0.0"),
        ("npm:a@1.1.0-rc.1", "a", "1.1.0-rc.1"),
        ("npm:a@0.155.0-alpha.9.2", "a", "0.155.0-alpha.9.2"),
        ("npm:a@1.0.0-0", "a", "1.0.0-0"),
        ("npm:a@1.0.0-0a.-.--1.x-y", "a", "1.0.0-0a.-.--1.x-y"),
        ("npm:a@1.0.0-RC.1", "a", "1.0.0-RC.1"),
        ("npm:a@99999999999999999999.0.0", "a", "99999999999999999999.0.0"),
    ],
)
def test_an_exact_version_is_a_pin(text: str, name: str, version: str) -> None:
    assert parse(text) == Pin(name, version)
    assert f"npm:{parse(text)}" == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "npm:",
        "npm:a",
        "npm:a@",
        "npm:@1.0.0",
        "a@1.0.0",
        "NPM:a@1.0.0",
        "npm:A@1.0.0",
        "npm:@Scope/a@1.0.0",
        "npm:@scope@1.0.0",
        "npm:@scope/@1.0.0",
        "npm:@/a@1.0.0",
        "npm:scope/a@1.0.0",
        "npm:@a/b/c@1.0.0",
        "npm:.a@1.0.0",
        "npm:_a@1.0.0",
        "npm:-a@1.0.0",
        "npm:../a@1.0.0",
        "npm:@../a@1.0.0",
        "npm:a@latest",
        "npm:a@next",
        "npm:a@*",
        "npm:a@^1.0",
        "npm:a@^1.0.0",
        "npm:a@~1.0.0",
        "npm:a@>=1.0.0",
        "npm:a@1",
        "npm:a@1.0",
        "npm:a@1.0.0.0",
        "npm:a@1.x.0",
        "npm:a@v1.0.0",
        "npm:a@=1.0.0",
        "npm:a@1.0.0 - 2.0.0",
        "npm:a@1.0.0 || 2.0.0",
        "npm:a@01.0.0",
        "npm:a@1.00.0",
        "npm:a@1.0.00",
        "npm:a@1.0.0-01",
        "npm:a@1.0.0-",
        "npm:a@1.0.0-a.",
        "npm:a@1.0.0-a..b",
        "npm:a@1.0.0-a_b",
        "npm:a@1.0.0+build.5",
        "npm:a@1.0.0-rc.1+build.5",
        "npm:a@1.0.0\n",
        "npm:a@1.0.0\x00",
        " npm:a@1.0.0",
        "npm:a@1.0.0 ",
        "npm: a@1.0.0",
        "npm:a@1.0.\u0660",
        "npm:é@1.0.0",
        "npm:a@b@1.0.0",
        "git:github.com/a/b@1.0.0",
        "git+https://example.invalid/a.git",
        "https://example.invalid/a.tgz",
        "./a",
        "/a",
        "file:a@1.0.0",
    ],
)
def test_everything_else_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not an exact pin$"):
        parse(text)


def test_a_pin_is_refused_one_character_past_the_limit() -> None:
    longest = "npm:" + "a" * (MAX_PIN_CHARACTERS - len("npm:@1.0.0")) + "@1.0.0"

    assert len(longest) == MAX_PIN_CHARACTERS
    assert parse(longest).version == "1.0.0"
    with pytest.raises(ValueError, match="not an exact pin"):
        parse(longest.replace("@", "a@"))


@given(st.text(max_size=60) | st.from_regex(r"npm:[@a-z0-9/._~-]{0,20}@[0-9A-Za-z.+-]{0,20}", fullmatch=True))
def test_whatever_is_accepted_says_itself_again(text: str) -> None:
    try:
        pin = parse(text)
    except ValueError:
        return
    assert f"npm:{pin.name}@{pin.version}" == text
