"""Which tools a session gets, and which names of extensions' tools are refused."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.extensions.tools import BUILT_IN_TOOLS, ExtensionTool, compose, first_conflict, is_safe, repeated

READ_ONLY = ("read", "grep", "find", "ls")
CODING = ("read", "bash", "edit", "write", "grep", "find", "ls")
NAMES = st.text("aZ0_-+*:. é\n", max_size=66) | st.sampled_from(["mcp__x", "mcp_s_t", "read", "bash"])
GRANTED = st.lists(st.sampled_from(["mcp_s_t", "mcp_s_u"]), unique=True)


def tools(*names: str) -> list[ExtensionTool]:
    return [ExtensionTool(name, place) for place, name in enumerate(names)]


def test_a_read_only_session_gets_no_tool_of_an_extension() -> None:
    assert compose("read-only", ["mcp_docs_search"], tools("one")) == (*READ_ONLY, "mcp_docs_search")


def test_a_coding_session_gets_built_in_granted_and_extension_tools_in_that_order() -> None:
    assert compose("coding", ["mcp_docs_search"], tools("one", "two")) == (*CODING, "mcp_docs_search", "one", "two")


@pytest.mark.parametrize(
    "name",
    [
        *sorted(set(chain(READ_ONLY, CODING))),
        "mcp_docs_search",
        "first",
        "",
        "*",
        "a*",
        "+a",
        "-a",
        "a b",
        "a,b",
        "a.b",
        "tööl",
        "a\n",
        "x" * 65,
        "mcp__x",
        "mcp__",
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ],
)
def test_an_unsafe_reserved_or_taken_name_is_a_conflict(name: str) -> None:
    conflict = first_conflict(tools("first", name), ["mcp_docs_search"])

    assert conflict == ExtensionTool(name, 1)


@pytest.mark.parametrize("name", ["a", "_", "9", "A-", "Read", "mcp_x", "mcp", "read_mcp_resources", "x" * 64])
def test_any_other_name_is_none(name: str) -> None:
    assert first_conflict(tools("first", name), ["mcp_docs_search"]) is None


@given(st.lists(NAMES, max_size=6), GRANTED)
def test_without_a_conflict_every_composed_name_is_one_safe_tool(names: list[str], granted: list[str]) -> None:
    registered = tools(*names)
    composed = compose("coding", granted, registered)

    if first_conflict(registered, granted) is None:
        assert all(is_safe(name) for name in names)
        assert len(set(names) | set(granted) | set(BUILT_IN_TOOLS["coding"])) == len(composed)


def test_repeated_names_are_counted_as_pi_counts_them() -> None:
    assert repeated(tools("a", "b", "a", "a")) == 2
    assert repeated(tools("a", "b")) == 0
