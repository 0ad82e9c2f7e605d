"""Few free descriptors, and whether all that were taken have been given back."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pi_session_mcp.runtime.npm import LOCK_DESCRIPTOR

if TYPE_CHECKING:
    from collections.abc import Iterator


def opened() -> set[str]:
    """The descriptors that are open now."""
    return set(os.listdir("/dev/fd"))


@contextmanager
def few_descriptors(free: int) -> Iterator[None]:
    """At most so many can be opened in the block: those below the lowest limit are all taken.

    That limit lies above the descriptor at which npm gets its lock, or no run of it would ever work.
    """
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(LOCK_DESCRIPTOR, *map(int, os.listdir("/dev/fd")))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] < highest:
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)
