"""What the demonstration saw, step by step. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One step: what was to happen, whether it was seen to happen, how long it took, and what was seen.

    `detail` holds lines such as an answer's text or a diff, made by the demonstration itself: no path of this machine.
    Of a step that was not seen it holds what went wrong and, where known, what to do.
    """

    name: str
    ok: bool
    ms: int
    detail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The steps that were tried, in the order in which they ended. The first that was not seen ends the attempt."""

    steps: tuple[DemoStep, ...]


OnBegin: TypeAlias = Callable[[str], None]
"""Told of each step by its name before it begins, from the thread that called `run`."""

OnStep: TypeAlias = Callable[[DemoStep], None]
"""Told of each step as soon as it ended, from the thread that called `run`."""
