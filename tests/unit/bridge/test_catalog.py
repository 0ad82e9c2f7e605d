"""A server's list of tools is taken within its limits, and what goes wrong has one of three codes."""

from __future__ import annotations

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
def test_a_cursor_that_repeats_is_refused(cursor: str) -> None:
    catalog = Catalog("library")
    for page, said in enumerate(["", "a", "b"]):
        catalog.add([tool(str(page))], said)
    assert refused(catalog, tool("next"), cursor=cursor).code is Code.EXTERNAL_MCP_UNAVAILABLE


def test_a_tool_that_is_listed_twice_is_refused_on_one_page_and_on_two() -> None:
    catalog = Catalog("library")
    assert refused(catalog, tool("one"), tool("one")).code is Code.EXTERNAL_MCP_UNAVAILABLE
    assert refused(catalog, tool("one")).discovered_tools == 1


@pytest.mark.parametrize(
    "malformed",
    [
        tool(""),
        tool("x", {}),
        tool("x", {"type": "string"}),
        tool("x", {"type": ["object"]}),
        tool("x", {"type": "object", "properties": []}),
        tool("x", {"type": "object", "properties": {"n": {"type": "no such type"}}}),
        tool("x", {"type": "object", "properties": {"n": {"pattern": 1}}}),
        tool("x", {"type": "object", "required": "n"}),
        tool("x", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "definitions": 7}),
    ],
)
def test_a_malformed_tool_is_refused_also_when_it_is_not_granted(malformed: RemoteTool) -> None:
    assert refused(Catalog("library"), tool("fine"), malformed).code is Code.EXTERNAL_MCP_UNAVAILABLE


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
