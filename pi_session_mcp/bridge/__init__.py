"""External MCP servers: their processes, what they offer, and which parts of their results a model gets."""
