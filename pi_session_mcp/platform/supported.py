"""Which operating systems this program supports, as `sys.platform` names them. Pure."""

from __future__ import annotations

from typing import Final

SUPPORTED: Final = frozenset({"linux", "darwin"})
