"""What creating a session reads from the file system, each within a time limit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import to_thread

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.platform.files import look_at_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")


async def read_within(read: Callable[[], T], *, within_s: float) -> T:
    """Read in a thread, because a file system may hang. A thread that hangs for ever is left behind.

    Raises `TimeoutError`.
    """
    with anyio.fail_after(within_s):
        return await to_thread.run_sync(read, abandon_on_cancel=True)


async def refuse_unusable(workspace: Path, *, within_s: float) -> None:
    """Raise `Refusal(WORKSPACE_UNAVAILABLE)` unless a session could work in this directory."""
    try:
        seen = await read_within(partial(look_at_directory, workspace), within_s=within_s)
    except TimeoutError:
        raise workspace_unavailable() from None
    if not seen.is_usable:
        raise workspace_unavailable()


def workspace_unavailable() -> Refusal:
    """The refusal of an unusable workspace."""
    return Refusal(Code.WORKSPACE_UNAVAILABLE, stage=Stage.WORKSPACE)
