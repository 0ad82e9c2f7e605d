"""Sessions on real Pi hosts: creating them step by step, their requests and events, and their end."""
