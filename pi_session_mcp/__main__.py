"""Start of the program: `pi-session-mcp` and `python -m pi_session_mcp`."""
