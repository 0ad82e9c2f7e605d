"""Whether this checkout is one that setup would register."""

from __future__ import annotations

import os

import pytest

from pi_session_mcp.setup.release import find_installation, require_lasting
from pi_session_mcp.setup.result import SetupCode, Stopped


def can_be_registered(environment: dict[str, str]) -> bool:
    """Whether setup would register this installation: it refuses a checkout in a directory for temporary files."""
    try:
        require_lasting(find_installation(environment), environment)
    except Stopped as refused:
        return refused.code is not SetupCode.INSTALLATION_EPHEMERAL
    return True


needs_a_lasting_checkout = pytest.mark.skipif(
    not can_be_registered(dict(os.environ)),
    reason="this checkout lies in a directory for temporary files, which setup refuses to register",
)
