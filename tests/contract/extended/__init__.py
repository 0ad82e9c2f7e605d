"""Sessions with a pinned extension, on the real server and the real Pi SDK."""
