"""One attempt to abort what runs in a session; every caller of an abort shares it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.errors import Code, HostGone, Refusal
from pi_session_mcp.sessions.state import TurnState

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.sessions.ports import PiSession
    from pi_session_mcp.sessions.turn import Turn


class AbortAttempt:
    """Asks Pi to abort and waits until the prompt, if there is one, has settled.

    It lasts until Pi is done. If that takes longer than `abort_s`, `on_overdue` is called once.
    """

    def __init__(self, pi: PiSession, turn: Turn | None, *, abort_s: float, on_overdue: Callable[[], None]) -> None:
        self.done = anyio.Event()
        self.failed = False
        self.is_overdue = False
        self.found_host_gone = False
        self._pi = pi
        self._turn = turn
        self._abort_s = abort_s
        self._on_overdue = on_overdue

    async def wait(self) -> None:
        """Return when the abort has settled. Raises `Refusal` after `abort_s` of waiting, or when Pi's abort failed."""
        with anyio.move_on_after(self._abort_s) as patience:
            await self.done.wait()
        if patience.cancelled_caught:
            raise Refusal(Code.ABORT_TIMEOUT)
        if self.failed and self._turn_goes_on():
            raise Refusal(Code.ABORT_FAILED)

    async def run(self) -> None:
        """Make the attempt. Afterwards `failed` and `found_host_gone` say how it ended. A defect of ours is raised."""
        try:
            async with anyio.create_task_group() as watch:
                watch.start_soon(self._watch)
                await self._abort_and_settle()
                watch.cancel_scope.cancel()
        finally:
            self.done.set()

    async def _watch(self) -> None:
        await anyio.sleep(self._abort_s)
        self.is_overdue = True
        self._on_overdue()

    async def _abort_and_settle(self) -> None:
        try:
            await self._pi.abort()
        except HostGone:
            self.found_host_gone = True
            return
        except Refusal:
            self.failed = True
        except Exception:
            self.failed = True
            raise
        if self._turn is not None and not self._turn_was_left_running():
            await self._turn.let_go.wait()

    def _turn_was_left_running(self) -> bool:
        """After a failed abort a turn goes on. A prompt in quarantine is waited for until the host is given up."""
        return self.failed and self._turn is not None and self._turn.state is not TurnState.QUARANTINED

    def _turn_goes_on(self) -> bool:
        return self._turn is None or not self._turn.state.is_over
