"""Reads a file that may be anything: never waits for it, and never reads more than is asked for."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Without O_NONBLOCK, opening a FIFO would wait for a writer. What a file is can be told only when it is open.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NotRegular(OSError):  # noqa: N818 - an expected answer
    """It is no regular file, or not such a file as was asked for."""


class TooLarge(OSError):  # noqa: N818 - an expected answer
    """It is larger than it may be."""


def read_regular(path: Path, *, max_bytes: int) -> bytes:
    """All bytes of a regular file. Raises `OSError` (`NotRegular`, `TooLarge`), or `ValueError` for an absurd path."""
    return read_seen(path, max_bytes=max_bytes)[0]


def read_seen(
    path: Path, *, max_bytes: int, flags: int = 0, is_fine: Callable[[os.stat_result], bool] = lambda _seen: True
) -> tuple[bytes, os.stat_result]:
    """As `read_regular`, and what the open file was; it is read only if that `is_fine`. `flags` are for open(2)."""
    descriptor = os.open(path, _FLAGS | flags)
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or not is_fine(seen):
            raise NotRegular(errno.EINVAL, "not a regular file")
        content = bytearray()
        while len(content) <= max_bytes:
            part = os.read(descriptor, max_bytes + 1 - len(content))
            if not part:
                return bytes(content), seen
            content += part
    finally:
        os.close(descriptor)
    raise TooLarge(errno.EFBIG, "too large")
