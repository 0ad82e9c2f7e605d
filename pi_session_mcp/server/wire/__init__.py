"""Bytes in, messages out: frames, the protocol, and what carries them. Nothing here knows the tools."""
