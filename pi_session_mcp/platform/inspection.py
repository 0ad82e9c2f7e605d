"""Keeping other processes of the same user out of this one."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4  # include/uapi/linux/prctl.h


def forbid_inspection() -> None:
    """From now on no process of this user can read or write this one's memory, environment and descriptors (Linux).

    So what this process starts cannot reach its pipes through /proc/PID/fd, attach to it, or copy its descriptors. The
    program that a child turns into can be inspected again: it is not this one's business. Root is not held back.
    Elsewhere nothing happens: there is no /proc, and macOS lets only root and debuggers that it trusts look inside.
    Raises `OSError`.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        if library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
