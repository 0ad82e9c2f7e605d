"""A local MCP server that hands bounded work to sessions of the Pi coding agent."""

__version__ = "0.1.0"
