"""The adapters of MCP clients. Each uses only the public command line of its client."""
