"""The names under which granted MCP tools are shown to the model in Pi. Pure."""

from __future__ import annotations


def exposed_name(server: str, tool: str) -> str:
    """The name of one granted tool, from its server's and its own alias.

    Aliases may contain `_`, so two pairs can give the same name. A profile with such a pair is refused.
    """
    return f"mcp_{server}_{tool}"
