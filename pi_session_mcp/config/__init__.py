"""The operator's configuration: its model, its strict reading, its schema."""
