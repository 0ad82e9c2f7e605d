"""What the demonstration saw, step by step. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One step: what was to happen, whether it was seen to happen, how long it took, and what was seen.

    `detail` holds lines such as an answer's text or a diff. The demonstration makes these itself, so they name no path
    of this machine. If the step was not seen, `detail` says what went wrong and, where we know it, what to do.
    """

    name: str
    ok: bool
    ms: int
    detail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The steps that were tried, in the order in which they ended. None is tried after one that was not seen."""

    steps: tuple[DemoStep, ...]


OnBegin: TypeAlias = Callable[[str], None]
"""Called with the name of each step before the step begins, in the thread that called `run`."""

OnStep: TypeAlias = Callable[[DemoStep], None]
"""Called with each step as soon as the step has ended, in the thread that called `run`."""
