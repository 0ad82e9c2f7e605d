"""Whatever the file holds, the answer is a configuration or one `ConfigError` that repeats no value of it."""

from __future__ import annotations

import copy
import json
import traceback
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pi_session_mcp.config.load import KNOWN_FIELDS, ConfigError, interpret
from pi_session_mcp.config.rules import Rule
from pi_session_mcp.config.schema import generate
from tests.unit.config.given import HERE, a_coding_profile, a_document, a_profile, a_server, refusal_of, to_bytes

pytestmark = pytest.mark.timeout(120)

CANARY: Final = "CANARY-5f2e"
SCHEMA: Final = Draft202012Validator(generate())
WHOLE: Final = a_document(
    **{"$schema": "x"},
    executionProfiles={
        "safe": a_profile(
            mcpServers={"kb": a_server(args=["x"], envFrom={"A": "B"}), "other": a_server()},
            extensions=["npm:a@1.0.0", "npm:b@1.0.0-rc.1"],
        ),
        "wide": a_coding_profile(fileAccess="user"),
    },
    piAgentDirectory="agent",
    runtime={"node": "/opt/node", "sdk": "/opt/sdk"},
    limits={"maxSessions": 3},
)

STRANGE: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.just(10**80),
    st.text(max_size=6).map(lambda text: CANARY + text),
    st.sampled_from(["", "read-only", "coding", "user", "workspace", "off", "/x\0", "npm:a@1.0.0", "\ud800"]),
    st.lists(st.just(CANARY), max_size=10),
    st.dictionaries(st.sampled_from([CANARY, "a", "name", "[key]"]), st.just(CANARY), max_size=3),
)
STRANGE_KEYS: Final = st.sampled_from([CANARY, "", "a", "A", "[key]", "default", "read_only", "a\n", "/", "\ud800"])


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in `tree`."""
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(place for step, inside in steps for place in places(inside, (*path, step)))]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A whole configuration of which up to three parts were replaced, removed, renamed or added."""
    tree = {"root": copy.deepcopy(WHOLE)}
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([place for place in places(tree) if place]))
        holder: Any = tree
        for step in path[:-1]:
            holder = holder[step]
        match draw(st.sampled_from(["replace", "remove", "rename", "add", "swap"])):
            case "remove" if len(path) > 1:
                del holder[path[-1]]
            case "rename" if len(path) > 1 and isinstance(holder, dict):
                holder[draw(STRANGE_KEYS)] = holder.pop(path[-1])
            case "add" if isinstance(holder[path[-1]], dict):
                holder[path[-1]][draw(STRANGE_KEYS)] = draw(STRANGE)
            case "swap":
                holder[path[-1]] = copy.deepcopy(draw(st.sampled_from([WHOLE, *WHOLE.values()])))
            case _:
                holder[path[-1]] = draw(STRANGE)
    return tree["root"]


def assert_says_only_our_words(error: ConfigError) -> None:
    assert error.rule in set(Rule)
    assert (error.pointer is None) == (error.line is not None) == (error.column is not None)
    for part in (error.pointer or "").split("/")[1:]:
        assert part in KNOWN_FIELDS | {"?"} or part.isdigit() or part[0].islower()
    said = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args) + json.dumps(error.to_report())
    assert CANARY not in said
    assert error.__cause__ is None
    assert error.__context__ is None


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_a_mutated_configuration_is_loaded_or_refused_in_our_words(document: Any) -> None:
    try:
        interpret(to_bytes(document), HERE)
    except ConfigError as error:
        caught = error
    else:
        assert SCHEMA.is_valid(document), "the loader took what the schema refuses"
        return
    assert_says_only_our_words(caught)
    assert refusal_of(document).to_report() == caught.to_report()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_text_is_loaded_or_refused_in_our_words(data: st.DataObject) -> None:
    text = json.dumps(WHOLE, indent=1).replace("agent", CANARY).encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 5, len(text))))
    patch = data.draw(
        st.binary(max_size=4) | st.sampled_from([b'"', b",", b"//", b"NaN", b"[" * 40, b"\\ud800", b"{}"])
    )
    try:
        interpret(text[:start] + patch + text[end:], HERE)
    except ConfigError as error:
        caught = error
    else:
        return
    assert_says_only_our_words(caught)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_our_words(text: bytes) -> None:
    assert_says_only_our_words(refusal_of(text))


SERVER: Final = {"command": "/x", "tools": {}}


@pytest.mark.parametrize(
    "hostile",
    [
        a_document(workspaces={f"A{number}": CANARY for number in range(50_000)}),
        a_document(executionProfiles={f"a{number}": {} for number in range(60_000)}),
        a_document(executionProfiles={f"a{number}": a_profile() for number in range(7_000)}),
        {f"A{number}": 1 for number in range(80_000)},
        a_document(executionProfiles={"a": a_profile(provider=CANARY * 80_000)}),
        a_document(executionProfiles={"a": a_profile(extensions=["npm:" + "a" * 900_000])}),
        a_document(executionProfiles={"a": a_profile(extensions=[CANARY] * 60_000)}),
        a_document(executionProfiles={"a": a_profile(mcpServers={"a": {**SERVER, "args": [1] * 300_000}})}),
        a_document(executionProfiles={"a": a_profile(mcpServers={f"A{number}": 1 for number in range(70_000)})}),
        a_document(
            executionProfiles={
                "a": a_profile(mcpServers={"a": {**SERVER, "tools": {f"A{number}": 1 for number in range(70_000)}}})
            }
        ),
    ],
    ids=range(10),
)
def test_a_mebibyte_of_errors_is_answered_with_one(hostile: Any) -> None:
    assert_says_only_our_words(refusal_of(hostile))
