"""Removes old entries from Node's compile cache: it must not grow for ever, or keep paths of extensions that are gone.

It blocks, so an event loop calls it in a thread. An entry may be removed at any time: Node writes it under another name
and renames it, and compiles again when an entry is missing. So any number of servers may do this at once, and the next
pass finishes one that was broken off.
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
"""Of all versions together. The pinned SDK takes about 5 MiB, and an extension with many modules as much."""
KEPT_S: Final = 30 * 24 * 3600.0
"""How long an entry is kept. Node writes it once, so an entry that is still used is compiled again then."""
BETWEEN_S: Final = 24 * 3600.0
_STAMP: Final = ".pruned"
"""The name of a file. Its modification time is that of the last pass."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    size: int
    modified: float


def prune(caches: Path, *, now: float) -> None:
    """Remove old entries, and the oldest ones when there are too many, at most once a day. Raises nothing.

    `caches` has a directory for each pair of versions. `now` is in seconds since the epoch.
    """
    with suppress(OSError):
        if _begin(caches / _STAMP, now):
            _prune(caches, now)


def _begin(stamp: Path, now: float) -> bool:
    """Whether a pass is due. After this, no other server has one to do."""
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
            with suppress(OSError):  # a directory with entries stays
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
