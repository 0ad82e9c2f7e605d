"""Registers this server in MCP clients, and takes back what it registered."""
