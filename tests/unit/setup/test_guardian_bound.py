"""A guardian that does not come to its end is waited for up to a bound, and then killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.keeper import kept
from pi_session_mcp.setup.guardian import gone

if TYPE_CHECKING:
    from pathlib import Path

DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"


@pytest.mark.anyio
async def test_one_that_is_deaf_is_killed_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deaf.py").write_text(DEAF)
    monkeypatch.setattr(kept, "PROGRAM", tmp_path / "deaf.py")
    keeper = kept.start(kept.Command(argv=("/bin/true",), environment={}, directory=str(tmp_path), grace_s=0.0))

    with anyio.fail_after(60):
        await gone(keeper, within_s=0.5)

    assert keeper._keeper.returncode == -9
