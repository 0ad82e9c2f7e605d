"""Takes the steps of the demonstration one by one, with the time of each."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.demo.report import DemoReport, DemoStep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

from pi_session_mcp.demo.report import OnBegin, OnStep


class NotSeen(Exception):  # noqa: N818 - a finding, which becomes a step of the report
    """A step did not happen as it should. `told` says in our own words what happened instead, and what to do."""

    def __init__(self, *told: str) -> None:
        super().__init__(*told)
        self.told = told


def require(seen: object, *told: str) -> None:
    """Raise `NotSeen` unless `seen` is true."""
    if not seen:
        raise NotSeen(*told)


@dataclass(frozen=True, slots=True)
class Seen:
    """The lines that a person sees below a step."""

    detail: tuple[str, ...] = ()

    @classmethod
    def lines(cls, *lines: str) -> Seen:
        """A step with these lines below it. Text with line ends becomes several lines."""
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

    async def take(
        self, name: str, act: Callable[[], Awaitable[Seen]], *, within_s: float = DEADLINES.demo_step_s
    ) -> bool:
        """Await `act` within the limit, report the step's end, and return whether the step was seen."""
        self._on_begin(name)
        began = time.perf_counter()
        ok, detail = await _outcome(act, within_s)
        # Rounded up: 0 ms would look as if the step had not happened.
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
    except Exception as error:  # noqa: BLE001 - any exception means that the step was not seen, and its text is foreign
        return False, (f"It failed unexpectedly ({type(error).__name__}).",)


@contextmanager
def _limit(within_s: float) -> Iterator[None]:
    """A cancel scope with this limit, or none: a step without a limit opens scopes that later steps use."""
    if math.isinf(within_s):
        yield
        return
    with anyio.fail_after(within_s):
        yield
