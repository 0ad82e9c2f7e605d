"""An event loop whose time passes only when nothing else is left to do, or when the test says so."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a timer, sets the loop's clock to it."""

    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)  # what comes through a pipe within this process is there at once
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock: nothing is scheduled and nothing is ready")
        self.loop.now_s += max(timeout, 0)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return super().get_map()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Run to completion it never sleeps; `drain()` and `advance()` drive it from synchronous code."""

    now_s: float

    def __init__(self) -> None:
        self.now_s = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now_s

    def drain(self) -> None:
        """Run everything that can run without time passing."""
        while self._ready:  # type: ignore[attr-defined]
            self._turn_once()

    def advance(self, by_s: float) -> None:
        """Let `by_s` pass, and everything happen that is due by then."""
        self.drain()
        until_s = self.now_s + by_s
        while self._scheduled and self._scheduled[0].when() <= until_s:  # type: ignore[attr-defined]
            self.now_s = max(self.now_s, self._scheduled[0].when())  # type: ignore[attr-defined]
            self._turn_once()
            self.drain()
        self.now_s = until_s

    def call_first(self, callback: Callable[[], object]) -> None:
        """Call `callback` in the next turn, before everything that is ready already."""
        self.call_soon(callback)
        self._ready.rotate(1)  # type: ignore[attr-defined]

    def _turn_once(self) -> None:
        self.call_soon(self.stop)
        self.run_forever()
