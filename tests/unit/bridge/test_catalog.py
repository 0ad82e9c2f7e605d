"""A server's list of tools is taken within its limits, and what goes wrong has one of three codes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pi_session_mcp.bridge.catalog import MAX_DEFINITION_BYTES, MAX_PAGES, MAX_TOOLS, Catalog, GrantedTool, RemoteTool
from pi_session_mcp.config.model import Grant
from pi_session_mcp.errors import Code, Refusal, Stage

OBJECT: dict[str, Any] = {"type": "object"}


def tool(name: str, schema: dict[str, Any] | None = None, description: str = "") -> RemoteTool:
    return RemoteTool(name, description, OBJECT if schema is None else schema)


def grants(**aliases: str) -> dict[str, Grant]:
    return {alias: Grant(name=name, read_only=True) for alias, name in aliases.items()}


def refused(catalog: Catalog, *tools: RemoteTool, cursor: str | None = None) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        catalog.add(tools, cursor)
    assert (refusal.value.stage, refusal.value.server) == (Stage.MCP_TOOLS, "library")
    return refusal.value


def not_granted(catalog: Catalog, **aliases: str) -> tuple[Code, str | None, int | None]:
    with pytest.raises(Refusal) as refusal:
        catalog.granted(grants(**aliases))
    assert (refusal.value.stage, refusal.value.server) == (Stage.MCP_TOOLS, "library")
    return refusal.value.code, refusal.value.tool, refusal.value.discovered_tools


def test_granted_tools_come_in_the_order_of_the_grants_and_unchanged() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "x-unknown": [1]}}, "required": ["n"]}
    catalog = Catalog("library")
    catalog.add([tool("remote/one", schema, "One."), tool("two")], "next")
    catalog.add([tool("three")], None)

    assert catalog.granted(grants(b="three", a="remote/one")) == (
        GrantedTool("mcp_library_b", "three", "", OBJECT),
        GrantedTool("mcp_library_a", "remote/one", "One.", schema),
    )


@pytest.mark.parametrize("pages", [1, 3])
def test_a_complete_and_empty_list_is_no_tools(pages: int) -> None:
    catalog = Catalog("library")
    for page in range(pages):
        catalog.add([], str(page) if page < pages - 1 else None)
    assert not_granted(catalog, a="one") == (Code.EXTERNAL_MCP_NO_TOOLS, None, 0)


def test_a_grant_that_is_not_in_the_list_is_missing() -> None:
    catalog = Catalog("library")
    catalog.add([tool("one"), tool("two")], None)
    assert not_granted(catalog, a="one", b="Two") == (Code.EXTERNAL_MCP_GRANT_TOOL_MISSING, "b", 2)


def test_there_may_be_as_many_tools_as_the_limit_and_no_more() -> None:
    catalog = Catalog("library")
    catalog.add([tool(str(number)) for number in range(MAX_TOOLS)], "next")
    assert len(catalog.granted(grants(a="0", b=str(MAX_TOOLS - 1)))) == 2

    refusal = refused(catalog, tool("one more"))
    assert (refusal.code, refusal.discovered_tools) == (Code.EXTERNAL_MCP_UNAVAILABLE, MAX_TOOLS)


def test_there_may_be_as_many_pages_as_the_limit_and_no_more() -> None:
    within, beyond = Catalog("library"), Catalog("library")
    for page in range(MAX_PAGES - 1):
        within.add([tool(str(page))], str(page))
        beyond.add([tool(str(page))], str(page))
    within.add([tool("last")], None)

    assert within.granted(grants(a="last"))
    assert refused(beyond, tool("last"), cursor="and on").code is Code.EXTERNAL_MCP_UNAVAILABLE


@pytest.mark.parametrize("cursor", ["a", "b", ""])
def test_a_cursor_that_repeats_ends_the_list_which_is_refused_if_a_grant_is_not_in_it(cursor: str) -> None:
    catalog = Catalog("library")
    for page, said in enumerate(["", "a", "b"]):
        catalog.add([tool(str(page))], said)
    catalog.add([tool("1"), tool("next")], cursor)

    assert [one.remote for one in catalog.granted(grants(a="1", b="next"))] == ["1", "next"]
    assert not_granted(catalog, a="1", b="later") == (Code.EXTERNAL_MCP_UNAVAILABLE, None, 4)


def test_a_page_that_comes_again_with_its_cursor_may_not_differ() -> None:
    catalog = Catalog("library")
    catalog.add([tool("one")], "again")
    catalog.add([tool("one", description="Another one.")], "again")
    assert not_granted(catalog, a="one") == (Code.EXTERNAL_MCP_UNAVAILABLE, None, 1)


@pytest.mark.parametrize("pages", [1, 2])
def test_a_tool_that_is_listed_twice_is_refused_if_it_is_granted(pages: int) -> None:
    catalog = Catalog("library")
    twice = [tool("one"), tool("other"), tool("one")]
    for page in [twice] if pages == 1 else [twice[:2], twice[2:]]:
        catalog.add(page, None)
    assert not_granted(catalog, a="one") == (Code.EXTERNAL_MCP_UNAVAILABLE, None, 2)
    assert catalog.granted(grants(a="other"))


@pytest.mark.parametrize(
    "schema", [{}, {"type": "string"}, {"type": ["object"]}, None, [], "object", {"type": "object", "n": math.inf}]
)
def test_a_tool_without_a_schema_of_an_object_is_refused_if_it_is_granted(schema: Any) -> None:
    catalog = Catalog("library")
    catalog.add([tool("fine"), RemoteTool("odd", "", schema)], None)
    assert not_granted(catalog, a="fine", b="odd") == (Code.EXTERNAL_MCP_UNAVAILABLE, "b", 2)
    assert catalog.granted(grants(a="fine"))


ODD: list[Any] = [None, 7, "name", [], {}, {"name": ""}, {"name": 7}, {"name": None, "inputSchema": OBJECT}]


def test_what_has_no_name_in_a_list_is_no_tool_and_does_no_harm() -> None:
    catalog = Catalog("library")
    page = {
        "tools": [*ODD, {"name": "one", "inputSchema": OBJECT, "description": 7, "icons": 7}, *ODD],
        "nextCursor": 7,
    }
    assert catalog.take(page) is None
    assert catalog.granted(grants(a="one")) == (GrantedTool("mcp_library_a", "one", "", OBJECT),)
    assert not_granted(catalog, a="two") == (Code.EXTERNAL_MCP_GRANT_TOOL_MISSING, "a", 1)


def test_of_a_tool_that_is_not_wanted_only_the_name_is_kept() -> None:
    catalog = Catalog("library", frozenset({"one"}))
    catalog.take({"tools": [{"name": name, "description": "d", "inputSchema": OBJECT} for name in ("one", "two")]})
    assert catalog.granted(grants(a="one")) == (GrantedTool("mcp_library_a", "one", "d", OBJECT),)
    assert [tool.schema for tool in catalog._tools.values()] == [OBJECT, None]


@pytest.mark.parametrize("tools", [None, {}, "one", 7])
def test_a_page_that_is_no_list_is_refused(tools: object) -> None:
    with pytest.raises(Refusal) as refusal:
        Catalog("library").take({"tools": tools})
    assert refusal.value.code is Code.EXTERNAL_MCP_UNAVAILABLE


def test_what_has_no_name_counts_as_well() -> None:
    catalog = Catalog("library")
    catalog.take({"tools": [{}] * MAX_TOOLS, "nextCursor": "x"})
    assert refused(catalog, tool("one more")).discovered_tools == 0


@pytest.mark.parametrize("more", [0, 1])
def test_a_granted_tool_may_describe_itself_up_to_the_limit(more: int) -> None:
    overhead = len(b'["",{"type":"object"}]')
    catalog = Catalog("library")
    catalog.add([tool("long", description="x" * (MAX_DEFINITION_BYTES - overhead + more)), tool("short")], None)

    assert catalog.granted(grants(a="short"))
    if more:
        assert not_granted(catalog, a="long") == (Code.EXTERNAL_MCP_UNAVAILABLE, "a", 2)
    else:
        assert catalog.granted(grants(a="long"))
