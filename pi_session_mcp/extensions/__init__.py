"""Pinned Pi extensions: pins, resolving, tool names."""
