"""Waits until a descriptor has something to read, with one registration for many waits.

`anyio.wait_readable` registers and unregisters the descriptor with the kernel around every wait, which costs more than
the wait itself on the paths that every message takes.
"""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Self

from anyio.lowlevel import checkpoint_if_cancelled

if TYPE_CHECKING:
    from types import TracebackType


class Readiness:
    """Waits on one descriptor, for one task at a time. Leave the block before you close the descriptor.

    A descriptor that stays readable while no task waits is unregistered again, or the loop would never sleep.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poller = select.poll()
        self._poller.register(descriptor, select.POLLIN)
        self._waiting: asyncio.Future[None] | None = None
        self._registered = False
        self._unheeded = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unregister()

    async def wait(self) -> None:
        """Return when there is something to read, or the end. Raises `PermissionError` for what is always ready.

        A task that reads in a loop can be cancelled here, even when there is always something to read.
        """
        # anyio cancels a task only while it waits, and with constant input it would never wait.
        await checkpoint_if_cancelled()
        loop = asyncio.get_running_loop()
        if not self._registered:
            loop.add_reader(self._descriptor, self._ready)
            self._registered = True
        try:
            while True:
                self._waiting = loop.create_future()
                await self._waiting
                # The event may be older than our last read. Then a read would block, so we check again.
                if self._poller.poll(0):
                    return
        finally:
            self._waiting = None

    def _ready(self) -> None:
        if self._waiting is not None:
            self._unheeded = False
            if not self._waiting.done():
                self._waiting.set_result(None)
        elif self._unheeded:
            self._unregister()
        else:
            # The loop polls once more before the woken task has read, so one more event is no sign of a busy
            # descriptor.
            self._unheeded = True

    def _unregister(self) -> None:
        if self._registered:
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self._registered = self._unheeded = False
