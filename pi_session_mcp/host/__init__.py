"""One Pi host: its frames, its process, its client, and the pool."""
