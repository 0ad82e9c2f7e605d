"""A kernel lock on a file that stays where it is.

The lock belongs to the open file description. A process that inherits a descriptor of it holds the lock as well, and
the kernel frees the lock when the last descriptor is closed, also when a process is killed. So there is no age to
judge, no process id to check, and nothing to clean up. The file is never renamed or removed: otherwise two processes
could each hold a lock on a file of that name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from typing import TYPE_CHECKING, Final, TypeAlias

from pi_session_mcp.platform.files import sync_descriptor, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # otherwise a FIFO at this path would block us
_BUSY: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})

Attempt: TypeAlias = "Callable[[Path], int | None]"
"""Takes the lock of an existing file and returns the descriptor that holds it, or `None` when somebody else has it.

Raises `LockUnsafe` or `OSError`.
"""


class LockUnsafe(Exception):  # noqa: N818 - an expected answer of the world
    """The file at the lock's path is not a plain file of ours, or not the file that was locked."""


def make_lock_file(path: Path) -> None:
    """Make a durable lock file with mode 0600 at `path`, unless there is a file already. Raises `OSError`."""
    try:
        descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, 0o600)  # the umask may have removed bits
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(path.parent)


def attempt_flock(path: Path) -> int | None:
    """See `Attempt`: by flock(2)."""
    descriptor = os.open(path, _FLAGS)
    try:
        require_same(descriptor, path)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        require_same(descriptor, path)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def attempt_exlock(
    path: Path, *, open_locked: Callable[[Path, int], int] = os.open, flag: int = getattr(os, "O_EXLOCK", 0)
) -> int | None:
    """See `Attempt`: by open(2) with `O_EXLOCK`, which opens and locks in one step (macOS, the BSDs)."""
    if flag == 0:
        raise LockUnsafe
    try:
        descriptor = open_locked(path, _FLAGS | flag)
    except OSError as error:
        if error.errno in _BUSY:
            return None
        raise
    try:
        require_same(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def attempt_here(path: Path) -> int | None:
    """See `Attempt`: the way of this operating system."""
    return attempt_exlock(path) if sys.platform == "darwin" else attempt_flock(path)


def require_same(descriptor: int, path: Path) -> None:
    """Raise `LockUnsafe` unless `descriptor` is the plain file at `path`, ours, with mode 0600 and no second name."""
    try:
        held, there = os.fstat(descriptor), os.lstat(path)
    except OSError:
        raise LockUnsafe from None
    ours = stat.S_ISREG(held.st_mode) and held.st_uid == os.geteuid() and held.st_nlink == 1
    same = (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
    if not (ours and same and stat.S_IMODE(held.st_mode) == 0o600):
        raise LockUnsafe
