"""Read a file that may be anything: never wait for it, never read more than is asked."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

# Without O_NONBLOCK, opening a FIFO would wait for a writer; the descriptor's kind is only known once it is open.
OPEN_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def read_regular(path: Path, *, max_bytes: int) -> bytes:
    """All bytes of a regular file. Raises `OSError`, also when it is something else or larger, or `ValueError`."""
    descriptor = os.open(path, OPEN_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, "too large")
    return content
