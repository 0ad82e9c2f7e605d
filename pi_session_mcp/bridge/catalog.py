"""What an external MCP server offers, page by page, and which of it a profile grants. Pure.

Every refusal names the server by its alias and says how many tools were discovered; what the server itself says does
not pass, names of tools included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from pi_session_mcp.bridge.schema import is_usable_schema
from pi_session_mcp.config.tool_names import exposed_name
from pi_session_mcp.errors import Code, Refusal, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pi_session_mcp.config.model import Grant

MAX_PAGES: Final = 16
MAX_TOOLS: Final = 512
MAX_DEFINITION_BYTES: Final = 131_072
"""Of a granted tool's description and schema as JSON: those of a whole profile must fit into one frame of the host."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class GrantedTool:
    """A granted tool: its name for the model, and its name at its server. The rest is the server's, unchanged."""

    exposed: str
    remote: str
    description: str
    schema: dict[str, Any]


@dataclass(slots=True)
class Catalog:
    """The pages of one server's list so far. `server` is its alias."""

    server: str
    _tools: dict[str, RemoteTool] = field(default_factory=dict)
    _cursors: set[str] = field(default_factory=set)
    _pages: int = 0

    def add(self, tools: Sequence[RemoteTool], next_cursor: str | None) -> None:
        """Take one page. Raises `Refusal(EXTERNAL_MCP_UNAVAILABLE)` if it breaks a limit or a rule."""
        self._pages += 1
        for tool in tools:
            if tool.name in self._tools or len(self._tools) == MAX_TOOLS or not _is_well_formed(tool):
                raise self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE)
            self._tools[tool.name] = tool
        if next_cursor is not None:
            if next_cursor in self._cursors or self._pages == MAX_PAGES:
                raise self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE)
            self._cursors.add(next_cursor)

    def granted(self, grants: Mapping[str, Grant]) -> tuple[GrantedTool, ...]:
        """The granted tools of the complete list, in the order of the grants. Raises `Refusal`."""
        if not self._tools:
            raise self._refusal(Code.EXTERNAL_MCP_NO_TOOLS)
        return tuple(self._grant(alias, grant.name) for alias, grant in grants.items())

    def _grant(self, alias: str, remote: str) -> GrantedTool:
        tool = self._tools.get(remote)
        if tool is None:
            raise self._refusal(Code.EXTERNAL_MCP_GRANT_TOOL_MISSING, alias)
        if _definition_bytes(tool) > MAX_DEFINITION_BYTES:
            raise self._refusal(Code.EXTERNAL_MCP_UNAVAILABLE, alias)
        return GrantedTool(exposed_name(self.server, alias), tool.name, tool.description, tool.schema)

    def _refusal(self, code: Code, tool: str | None = None) -> Refusal:
        return Refusal(code, stage=Stage.MCP_TOOLS, server=self.server, tool=tool, discovered_tools=len(self._tools))


def _definition_bytes(tool: RemoteTool) -> float:
    try:
        return len(to_json([tool.description, tool.schema]))
    except ValueError:  # what cannot be written down has no size that would fit
        return math.inf


def _is_well_formed(tool: RemoteTool) -> bool:
    return tool.name != "" and is_usable_schema(tool.schema)
