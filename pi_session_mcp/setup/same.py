"""Whether two registrations that are written differently start the same program with the same configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pi_session_mcp.platform.files import others_can_write

if TYPE_CHECKING:
    from pi_session_mcp.setup.registration import Registration


def leads_to_the_same(shown: Registration, intent: Registration) -> bool:
    """Whether `shown` names the same files as `intent`, by paths that other users cannot redirect."""
    if shown.arguments != intent.arguments or shown.environment.keys() != intent.environment.keys():
        return False
    configurations = ((value, intent.environment[name]) for name, value in shown.environment.items())
    return _is_same_file(shown.command, intent.command) and all(is_same_place(*pair) for pair in configurations)


def is_same_place(shown: str, intent: str) -> bool:
    """Whether it is the same file in the same directory: paths in a configuration are relative to its directory."""
    return _is_same_file(shown, intent) and _is_same_file(os.path.dirname(shown), os.path.dirname(intent))


def _is_same_file(shown: str, intent: str) -> bool:
    if shown == intent:
        return True
    try:
        same = os.path.isabs(shown) and os.path.samefile(shown, intent)
    except (OSError, ValueError):
        return False
    return same and not others_can_write(Path(shown))
