"""The MCP server: descriptors, transport, tools, life cycle."""
