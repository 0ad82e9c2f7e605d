"""External MCP servers: their processes, what they offer, and what of their results a model gets."""
