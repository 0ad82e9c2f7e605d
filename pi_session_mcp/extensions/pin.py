"""Pins of Pi extensions. Pure.

The grammar belongs to the configuration, which may not import upwards; everything about extensions finds it here.
"""

from __future__ import annotations

from pi_session_mcp.config.pin import MAX_PIN_CHARACTERS, Pin, parse

__all__ = ["MAX_PIN_CHARACTERS", "Pin", "parse"]
