"""MCP clients, each spoken to only through its public command line."""
