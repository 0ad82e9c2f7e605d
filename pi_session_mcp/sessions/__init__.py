"""Sessions and turns: states, the registry, creation."""
