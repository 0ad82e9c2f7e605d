"""Takes the steps of the demonstration one by one, with the time of each."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.demo.report import DemoReport, DemoStep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from pi_session_mcp.demo.report import OnBegin, OnStep

STEP_LIMIT_S: Final = 60.0
"""Far more than any step takes; what has not happened by then is counted as not happening."""


class NotSeen(Exception):  # noqa: N818 - a finding, which becomes a step of the report
    """What a step promised did not happen. `told` says what happened instead and what to do, in words of ours."""

    def __init__(self, *told: str) -> None:
        super().__init__(*told)
        self.told = told


def require(seen: object, *told: str) -> None:
    """Raise `NotSeen` unless `seen` is true."""
    if not seen:
        raise NotSeen(*told)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a person is shown of a step that happened."""

    detail: tuple[str, ...] = ()

    @classmethod
    def lines(cls, *lines: str) -> Seen:
        """A step with these lines below it; a line that holds line ends becomes several."""
        return cls(tuple(part for line in lines for part in line.splitlines()))


class Steps:
    """The steps so far. Its callbacks may raise, and then nothing more is told."""

    def __init__(self, on_begin: OnBegin, on_step: OnStep) -> None:
        self._on_begin = on_begin
        self._on_step = on_step
        self._taken: list[DemoStep] = []

    @property
    def report(self) -> DemoReport:
        """The steps that have ended."""
        return DemoReport(tuple(self._taken))

    async def take(self, name: str, act: Callable[[], Awaitable[Seen]], *, within_s: float = STEP_LIMIT_S) -> bool:
        """Whether what `act` does was seen to happen in time; its end is told before this returns."""
        self._on_begin(name)
        began = time.perf_counter()
        ok, detail = await _outcome(act, within_s)
        # Rounded up: a step that took no time at all would look like one that did not happen.
        step = DemoStep(name, ok, math.ceil((time.perf_counter() - began) * 1000), detail)
        self._taken.append(step)
        self._on_step(step)
        return ok


async def _outcome(act: Callable[[], Awaitable[Seen]], within_s: float) -> tuple[bool, tuple[str, ...]]:
    try:
        with _limit(within_s):
            return True, (await act()).detail
    except NotSeen as instead:
        return False, instead.told
    except TimeoutError:
        return False, ("It did not happen in time.",)
    except Exception as error:  # noqa: BLE001 - whatever it is, the step was not seen; foreign texts are not shown
        return False, (f"It failed unexpectedly ({type(error).__name__}).",)


@contextmanager
def _limit(within_s: float) -> Iterator[None]:
    """No cancel scope where there is no limit: a step may open one and leave it open for the steps after it."""
    if math.isinf(within_s):
        yield
        return
    with anyio.fail_after(within_s):
        yield
