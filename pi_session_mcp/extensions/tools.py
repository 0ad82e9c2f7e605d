"""The tools that a session gets, and the names of extensions' tools that are refused. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pi_session_mcp.config.model import PermissionProfile

BUILT_IN_TOOLS: Final[Mapping[PermissionProfile, tuple[str, ...]]] = {
    "read-only": ("read", "grep", "find", "ls"),
    "coding": ("read", "bash", "edit", "write", "grep", "find", "ls"),
}
"""The built-in tools of each permission profile, in the order in which Pi gets them."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
"""In a list of tools, Pi takes `*` for a glob and a leading `+` or `-` for a change to its own list."""
_MCP_PREFIX: Final = "mcp__"
_MCP_NAMES: Final = frozenset({"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"})
"""Pi takes these names, and those with the prefix, for MCP tools, and its list of allowed tools does not bind them."""


@dataclass(frozen=True, slots=True)
class ExtensionTool:
    """A tool that an extension has registered. `owner` is the place of its entry among those that were loaded."""

    name: str
    owner: int


def compose(
    permission_profile: PermissionProfile, granted: Sequence[str], extension_tools: Sequence[ExtensionTool]
) -> tuple[str, ...]:
    """The names of exactly the tools that may be active, in the order in which Pi gets them.

    `granted` are the names of granted MCP tools. Tools of extensions are active in coding sessions only. Whether they
    may be registered at all is decided by `first_conflict`.
    """
    of_extensions = [tool.name for tool in extension_tools] if permission_profile == "coding" else []
    return (*BUILT_IN_TOOLS[permission_profile], *granted, *of_extensions)


def first_conflict(extension_tools: Sequence[ExtensionTool], granted: Sequence[str]) -> ExtensionTool | None:
    """The first tool with an unsafe name, or one that a built-in tool, a grant or another tool has."""
    taken = {*granted, *(name for names in BUILT_IN_TOOLS.values() for name in names)}
    for tool in extension_tools:
        if tool.name in taken or not is_safe(tool.name):
            return tool
        taken.add(tool.name)
    return None


def is_safe(name: str) -> bool:
    """Whether Pi takes this name, in a list of tools, for this one tool."""
    return _NAME.fullmatch(name) is not None and not name.startswith(_MCP_PREFIX) and name not in _MCP_NAMES


def repeated(extension_tools: Sequence[ExtensionTool]) -> int:
    """How many tools have the name of an earlier tool. Pi reports each of them as an error of loading."""
    return len(extension_tools) - len({tool.name for tool in extension_tools})
