"""What every test gets: anyio on asyncio, and a home that does not exist until the test makes one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.keeper import orphans

if TYPE_CHECKING:
    from pathlib import Path


def _adopt_nothing() -> None:
    """A process that adopts may have no children but keepers, and ends all others: no promise for one that tests."""


orphans.adopt_orphans = _adopt_nothing


@pytest.fixture
def anyio_backend() -> str:
    """The one backend that the program runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_real_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point every variable that leads to a person's own files at a place that does not exist."""
    nowhere = tmp_path_factory.mktemp("nowhere") / "home"
    for name in list(os.environ):
        if name.startswith(("XDG_", "PI_", "CLAUDE_", "CODEX_")):
            monkeypatch.delenv(name)
    for name in ("HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR"):
        monkeypatch.setenv(name, str(nowhere))
    return nowhere
