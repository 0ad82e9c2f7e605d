"""What setup needs from an operating system and not every one has, as values that a test can replace."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi_session_mcp.platform.filesystem import has_trusted_locks
from pi_session_mcp.platform.lock import attempt_here
from pi_session_mcp.platform.supported import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_session_mcp.platform.lock import Attempt


@dataclass(frozen=True, slots=True)
class System:
    """`is_supported` says whether there is a lock and a process table that we know how to use."""

    is_supported: bool
    attempt_lock: Attempt
    trusts_locks: Callable[[Path], bool]


def this_system() -> System:
    """The system that we run on."""
    return System(sys.platform in SUPPORTED, attempt_here, has_trusted_locks)
