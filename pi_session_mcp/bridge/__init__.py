"""External MCP servers whose tools are granted to sessions."""
