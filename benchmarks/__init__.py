"""Measures a server command from outside; run with `make bench`."""
