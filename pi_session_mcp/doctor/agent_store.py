"""Whether Pi could lock its credentials: it reads none without a lock beside the file.

Source: `dist/core/auth-storage.js` of the SDK 1.6.0.
"""

from __future__ import annotations

import os
from pathlib import Path

from pi_session_mcp.doctor.facts import AgentStore
from pi_session_mcp.platform.files import can_make


def look_at_store(agent_directory: Path) -> AgentStore:
    """What stands in the way of a lock, if anything. The lock is made beside the file that a link leads to.

    A lock that is there was left behind, or belongs to a Pi that is at work this very moment. Pi takes over an empty
    directory after ten seconds; anything else of that name stays in its way for ever.
    """
    file = Path(os.path.realpath(agent_directory / "auth.json"))
    if not can_make(file.parent):
        return AgentStore.NOT_WRITABLE
    return AgentStore.LOCKED if os.path.lexists(f"{file}.lock") else AgentStore.FINE
