"""Where Node and the Pi SDK are, and how the pinned one is installed."""
