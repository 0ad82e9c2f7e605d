"""The offline check."""
