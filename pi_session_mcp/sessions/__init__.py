"""Sessions and turns: states, the registry, deadlines, creation."""
