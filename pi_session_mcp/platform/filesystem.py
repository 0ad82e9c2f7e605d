"""Tells on which file systems a kernel lock really excludes other processes. Changes nothing."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    TypeOf: TypeAlias = Callable[[Path | str], int]

_TRUSTED_ON_LINUX: Final = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # Btrfs
        0x01021994,  # tmpfs
        0x794C7630,  # overlayfs
        0x2FC12FC1,  # ZFS
        0xF2F52010,  # F2FS
        0x24051905,  # UBIFS
        0xCA451A4E,  # bcachefs
    }
)
"""The `f_type` of file systems where `flock` is known to exclude others. No network or FUSE system is among them."""

_BUFFER_BYTES: Final = 4096
_TYPE_ON_DARWIN: Final = slice(60, 64)
"""Behind two 32-bit and five 64-bit counts, the file system's id and its owner."""


def has_trusted_locks(directory: Path, *, platform: str = sys.platform, type_of: TypeOf | None = None) -> bool:
    """Whether a kernel lock on a file in this existing directory excludes others for certain.

    On macOS that is so where the file system is of the same type as that of `/`; the number itself is not stable.
    If the type cannot be told, the lock is not trusted. Tests pass `type_of` in place of the operating system's answer.
    """
    ask = type_of or (_type_on_darwin if platform == "darwin" else _type_on_linux)
    try:
        if platform == "linux":
            return ask(directory) in _TRUSTED_ON_LINUX
        if platform == "darwin":
            return ask(directory) == ask("/")
    except (OSError, AttributeError, ValueError):
        return False
    return False


def _type_on_linux(path: Path | str) -> int:
    said = _statfs(path, "statfs")
    return int.from_bytes(said[: ctypes.sizeof(ctypes.c_long)], sys.byteorder) & 0xFFFFFFFF


def _type_on_darwin(path: Path | str) -> int:
    # Intel Macs keep the structure with short inode numbers under the plain name.
    name = "statfs" if os.uname().machine == "arm64" else "statfs$INODE64"
    return int.from_bytes(_statfs(path, name)[_TYPE_ON_DARWIN], sys.byteorder)


def _statfs(path: Path | str, name: str) -> bytes:
    """The C library's answer as it lies in memory: Python's own `os.statvfs` leaves the type out. Raises `OSError`."""
    library = ctypes.CDLL(None, use_errno=True)
    said = ctypes.create_string_buffer(_BUFFER_BYTES)
    if getattr(library, name)(os.fsencode(path), said) != 0:
        raise OSError(ctypes.get_errno(), name)
    return said.raw
