"""Whether two registrations that are written differently start the same program with the same configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pi_session_mcp.platform.files import others_can_write

if TYPE_CHECKING:
    from pi_session_mcp.setup.registration import Registration


def leads_to_the_same(shown: Registration, intent: Registration) -> bool:
    """Whether `shown` names the very files that `intent` names, by paths that nobody else can turn elsewhere."""
    if shown.arguments != intent.arguments or shown.environment.keys() != intent.environment.keys():
        return False
    configurations = ((value, intent.environment[name]) for name, value in shown.environment.items())
    return _is_same_file(shown.command, intent.command) and all(is_same_place(*pair) for pair in configurations)


def is_same_place(shown: str, intent: str) -> bool:
    """The same file in the same directory: what a configuration says of other files is relative to its own."""
    return _is_same_file(shown, intent) and _is_same_file(os.path.dirname(shown), os.path.dirname(intent))


def _is_same_file(shown: str, intent: str) -> bool:
    if shown == intent:
        return True
    try:
        same = os.path.isabs(shown) and os.path.samefile(shown, intent)
    except (OSError, ValueError):
        return False
    return same and not others_can_write(Path(shown))
