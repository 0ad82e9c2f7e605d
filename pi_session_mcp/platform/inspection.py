"""Keeping other processes of the same user out of this one."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4  # include/uapi/linux/prctl.h


def forbid_inspection() -> None:
    """From now on no process of this user can read or write this one's memory, environment and descriptors (Linux).

    So a process that we start cannot reach our pipes through /proc/PID/fd, attach to us, or copy our descriptors. This
    does not hold for our children once they run another program, and it does not stop root. On other systems nothing
    happens: macOS has no /proc, and only root and trusted debuggers can look into a process.
    Raises `OSError`.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        if library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
