"""The variable that names the configuration file. Pure."""

from __future__ import annotations

from typing import Final

VARIABLE: Final = "PI_SESSION_MCP_CONFIG"
