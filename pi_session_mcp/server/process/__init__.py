"""The process of a server: its descriptors, its standard error, its signals and its end. Standard library only."""
