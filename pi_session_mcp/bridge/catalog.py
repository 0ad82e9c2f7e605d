"""What an external MCP server offers, page by page, and which of it a profile grants. Pure.

Only granted tools are judged. The other tools of a server, and their form, do not matter. Every refusal has the
server's alias and says how many tools were discovered. No text of the server passes, not even names of tools.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.terms.tool_names import exposed_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pi_session_mcp.config.model import Grant

MAX_PAGES: Final = 16
MAX_TOOLS: Final = 512
MAX_DEFINITION_BYTES: Final = 131_072
"""Of a granted tool's description and schema as JSON. Those of a whole profile must fit into one frame to the host."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it. Its schemas may be anything."""

    name: str
    description: str
    schema: object
    output: object = None


@dataclass(frozen=True, slots=True)
class GrantedTool:
    """A granted tool: its name for the model, its name at its server, and what the server says of it, unchanged.

    The judge has not seen `schema` yet, that of the arguments. `output` is the schema of the results.
    """

    exposed: str
    remote: str
    description: str
    schema: dict[str, Any]
    output: dict[str, Any] | None = None


@dataclass(slots=True)
class Catalog:
    """The pages of one server's list so far. `server` is its alias. Of tools not `wanted` only names are kept."""

    server: str
    wanted: frozenset[str] | None = None
    _tools: dict[str, RemoteTool] = field(default_factory=dict)
    _twice: set[str] = field(default_factory=set)
    _cursors: set[str] = field(default_factory=set)
    _entries: int = 0
    _pages: int = 0
    _stuck: bool = False

    def take(self, page: Mapping[str, Any]) -> str | None:
        """Take a page as the server wrote it. Returns the cursor of the next page, or `None` after the last.

        Raises `Refusal`.
        """
        listed, cursor = page.get("tools"), page.get("nextCursor")
        if not isinstance(listed, list):
            raise self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE)
        goes_on = cursor if isinstance(cursor, str) else None
        self._entries += sum(1 for entry in listed if not _has_name(entry))
        self.add((self._read(entry) for entry in listed if _has_name(entry)), goes_on)
        return None if self._stuck else goes_on

    def add(self, tools: Iterable[RemoteTool], next_cursor: str | None) -> None:
        """Take one page. Raises `Refusal(EXTERNAL_MCP_UNAVAILABLE)` for more than the limits.

        A cursor that comes a second time ends the list, since it leads to pages that are known.
        """
        self._pages += 1
        self._stuck = next_cursor in self._cursors
        for tool in tools:
            self._add(tool)
        if next_cursor is not None and not self._stuck:
            if self._pages == MAX_PAGES:
                raise self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE)
            self._cursors.add(next_cursor)

    def _read(self, entry: Mapping[str, Any]) -> RemoteTool:
        name, said = entry["name"], entry.get("description")
        if self.wanted is not None and name not in self.wanted:
            return RemoteTool(name, "", None)
        description = said if isinstance(said, str) else ""
        return RemoteTool(name, description, entry.get("inputSchema"), entry.get("outputSchema"))

    def _add(self, tool: RemoteTool) -> None:
        if self._entries == MAX_TOOLS and not self._stuck:
            raise self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE)
        self._entries += 1
        known = self._tools.setdefault(tool.name, tool)
        if known is not tool and not (self._stuck and known == tool):
            self._twice.add(tool.name)

    def granted(self, grants: Mapping[str, Grant]) -> tuple[GrantedTool, ...]:
        """The granted tools of the list, in the order of the grants. Raises `Refusal`."""
        wanted = {grant.name for grant in grants.values()}
        if self._twice & wanted or (self._stuck and not wanted <= self._tools.keys()):
            raise self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE)
        if self._entries == 0:
            raise self._refusal(Code.EXTERNAL_MCP_NO_TOOLS)
        return tuple(self._grant(alias, grant.name) for alias, grant in grants.items())

    def unusable(self, alias: str) -> Refusal:
        """The refusal of a granted tool that cannot be used as it is described."""
        return self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE, alias)

    def _grant(self, alias: str, remote: str) -> GrantedTool:
        tool = self._tools.get(remote)
        if tool is None:
            raise self._refusal(Code.EXTERNAL_MCP_GRANT_TOOL_MISSING, alias)
        if not isinstance(tool.schema, dict) or tool.schema.get("type") != "object":
            raise self.unusable(alias)
        if not _fits([tool.description, tool.schema]):
            raise self.unusable(alias)
        output = tool.output if isinstance(tool.output, dict) and _fits(tool.output) else None
        return GrantedTool(exposed_name(self.server, alias), tool.name, tool.description, tool.schema, output)

    def _refusal(self, code: Code, tool: str | None = None) -> Refusal:
        return Refusal(code, stage=Stage.MCP_TOOLS, server=self.server, tool=tool, discovered_tools=len(self._tools))


def _has_name(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry["name"] != ""


def _fits(described: object) -> bool:
    try:
        text = json.dumps(described, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return len(text.encode()) <= MAX_DEFINITION_BYTES
    except (ValueError, RecursionError):  # what is no JSON does not fit either
        return False
