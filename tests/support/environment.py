"""The runtime of the environment that the tests run in: made by `make setup`, or here when it is missing."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from pi_session_mcp.runtime.install import Installer, install
from pi_session_mcp.runtime.locate import Runtime, locate
from tests.support.runtimes import Wishes


@cache  # whether what is installed is whole is found out by loading the SDK
def ensure_installed() -> Runtime:
    """The installed runtime; installs it first where there is none. Not for a test that runs an event loop.

    The environments of `tools/canary.py` have another SDK than the pinned one, which an install would replace.
    """
    if "CANARY_RUNTIME" not in os.environ:
        result = install(Installer(environ=os.environ))
        assert result.ok, f"the runtime could not be installed: {result.code}"
    return locate(Wishes(), os.environ, Path.cwd())
