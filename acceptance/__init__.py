"""Setup with real MCP clients, in throw-away homes, watched from outside."""
