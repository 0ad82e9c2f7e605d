"""One transaction at a time: an exclusive kernel lock on a file that is never replaced.

Every command of a client gets the lock too, through its guardian. So the fence is free when the last of them is gone,
and not already when this process is.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.platform.lock import LockUnsafe, make_lock_file, require_same
from pi_session_mcp.setup.result import SetupCode, Stopped
from pi_session_mcp.setup.state_directory import LOCK
from pi_session_mcp.setup.steps import FENCE_HELD, FENCE_LEAVING, FENCE_WANTED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pi_session_mcp.setup.steps import OnStep
    from pi_session_mcp.setup.system import System


@dataclass(frozen=True, slots=True)
class Fence:
    """The held lock. `descriptor` stays open as long as we hold the fence."""

    descriptor: int
    path: Path

    def require_sound(self) -> None:
        """Raise `Stopped` if what we hold is no longer the file that others would lock."""
        try:
            require_same(self.descriptor, self.path)
        except LockUnsafe:
            raise Stopped(SetupCode.STATE_DIRECTORY_UNSAFE) from None


@asynccontextmanager
async def fence(directory: Path, system: System, *, within_s: float, on_step: OnStep) -> AsyncIterator[Fence]:
    """Hold the fence of `directory`, which exists. Raises `Stopped` when others hold it for `within_s`."""
    on_step(FENCE_WANTED, None)
    path = directory / LOCK
    try:
        make_lock_file(path)
        descriptor = await _locked(path, system, within_s)
    except LockUnsafe:
        raise Stopped(SetupCode.STATE_DIRECTORY_UNSAFE) from None
    except OSError:
        raise Stopped(SetupCode.STATE_DIRECTORY_UNAVAILABLE) from None
    try:
        on_step(FENCE_HELD, None)
        yield Fence(descriptor, path)
        on_step(FENCE_LEAVING, None)
    finally:
        os.close(descriptor)


async def _locked(path: Path, system: System, within_s: float) -> int:
    until = anyio.current_time() + within_s
    while (descriptor := system.attempt_lock(path)) is None:
        if anyio.current_time() >= until:
            raise Stopped(SetupCode.LOCK_BUSY)
        # Waiting for the lock in the kernel would block this thread, and with it the handling of signals.
        await anyio.sleep(DEADLINES.setup_lock_retry_s)
    return descriptor
