"""A guardian that does not come to its end is waited for up to a bound, and then killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.keeper import child
from pi_session_mcp.setup.clients.base import ClientCommand, CommandFailed, CommandFailure
from pi_session_mcp.setup.fence import Fence
from pi_session_mcp.setup.guardian import Guarded

if TYPE_CHECKING:
    from pathlib import Path

DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"


@pytest.mark.anyio
async def test_one_that_is_deaf_is_killed_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deaf.py").write_text(DEAF)
    monkeypatch.setattr(child, "PROGRAM", tmp_path / "deaf.py")
    path = tmp_path / "lock"
    with path.open("wb") as lock:
        guarded = Guarded(Fence(lock.fileno(), path), Deadlines(setup_command_s=0.2, setup_gone_s=0.5))
        with anyio.fail_after(60), pytest.raises(CommandFailed) as failed:
            await guarded.run(ClientCommand(("/bin/true",), tmp_path, {}, mutates=True))

    assert failed.value.kind is CommandFailure.TIMEOUT
