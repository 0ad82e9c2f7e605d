"""The small program that every process tree of ours runs under."""
