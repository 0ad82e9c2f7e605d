"""Keeps what Node has compiled from growing for ever, and from telling of extensions that are long gone.

Blocking: an event loop calls it in a thread. Node writes each entry under another name and renames it, and opens it
once for each start, so an entry may go at any time: whoever misses it compiles again. That makes it safe beside any
number of servers, and a pass that is broken off is finished by the next.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_CACHE_BYTES: Final = 64 * 1024 * 1024
"""Of all pairs of versions together; the pinned SDK takes some 5 MiB, and an extension with many modules as much."""
KEPT_S: Final = 30 * 24 * 3600.0
"""For how long an entry is kept. Node writes it once, so one that is in use is compiled again then."""
BETWEEN_S: Final = 24 * 3600.0
_STAMP: Final = ".pruned"
"""Its modification time is that of the last pass."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    size: int
    modified: float


def prune(caches: Path, *, now: float) -> None:
    """Remove entries that are old, and the oldest of what is too much; at most once a day. Raises nothing.

    `caches` holds a directory for each pair of versions, and `now` is the time of day in seconds since the epoch.
    """
    with suppress(OSError):
        if _begin(caches / _STAMP, now):
            _prune(caches, now)


def _begin(stamp: Path, now: float) -> bool:
    """Whether a pass is due; from then on none is for another server."""
    with suppress(FileNotFoundError):
        if 0 <= now - stamp.lstat().st_mtime < BETWEEN_S:
            return False
    descriptor = os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.utime(descriptor, (now, now))
    finally:
        os.close(descriptor)
    return True


def _prune(caches: Path, now: float) -> None:
    size = 0
    for entry in sorted(_entries(caches), key=lambda one: one.modified, reverse=True):
        size += entry.size
        if now - entry.modified > KEPT_S or size > MAX_CACHE_BYTES:
            with suppress(OSError):
                os.unlink(entry.path)
    for directory, _directories, _files in os.walk(caches, topdown=False):
        if directory != str(caches):
            with suppress(OSError):  # what is not empty stays
                os.rmdir(directory)


def _entries(caches: Path) -> Iterator[_Entry]:
    for directory, _directories, names in os.walk(caches):  # links are not followed
        for name in names:
            if (directory, name) == (str(caches), _STAMP):
                continue
            path = os.path.join(directory, name)
            with suppress(FileNotFoundError):
                seen = os.lstat(path)
                if stat.S_ISREG(seen.st_mode):
                    yield _Entry(path, seen.st_size, seen.st_mtime)
