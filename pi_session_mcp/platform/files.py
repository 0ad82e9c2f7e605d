"""Writing files that survive a crash, and judging whether others could have changed a file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import pwd
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.platform.directory import Directory
from pi_session_mcp.platform.text import utf8_text

if TYPE_CHECKING:
    from collections.abc import Callable

_ADMINISTRATORS: Final = frozenset({"root", "wheel", "admin", "sudo"}) | (
    frozenset({"staff"}) if sys.platform == "linux" else frozenset()
)
"""Groups whose members can become root anyway. Debian's `/usr/local` belongs to `staff`; macOS puts everybody in it."""


def write_durably(path: Path, content: bytes, *, mode: int = 0o600, staged: Callable[[], None] | None = None) -> None:
    """Replace `path` by a file with this content. After a crash there is the old file or the new one, and never a part.

    POSIX keeps the new name only after the directory is synced, and the content only after the file is synced. The
    temporary file is removed if anything fails. `staged` is called when the content is written and nothing is replaced
    yet. Raises `OSError`.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            sync_descriptor(file.fileno())
        if staged is not None:
            staged()
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_directory(path.parent)


def sync_descriptor(descriptor: int) -> None:
    """Write an open file to the medium. On macOS `fsync` ends at the drive's cache, so we use `F_FULLFSYNC`."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(descriptor, full)
        except OSError as error:  # some file systems (network mounts) do not have it
            if error.errno not in {errno.ENOTSUP, errno.EINVAL, errno.ENOTTY}:
                raise
        else:
            return
    os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable: those added, changed and removed before."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def is_program(path: Path) -> bool:
    """Whether `path` leads to a regular file that we may execute."""
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def look_at_directory(path: Path) -> Directory:
    """What is at `path` for this user. Both `serve` and `doctor` judge a workspace by this function alone."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        return Directory.UNREADABLE
    except (OSError, ValueError):  # absent, a dangling link, a circle of links, a name that is too long
        return Directory.MISSING
    if not stat.S_ISDIR(mode):
        return Directory.NOT_DIRECTORY
    if utf8_text(path) is None or utf8_text(os.path.realpath(path)) is None:
        return Directory.UNNAMEABLE
    if not os.access(path, os.R_OK | os.X_OK):
        return Directory.UNREADABLE
    return Directory.WRITABLE if os.access(path, os.W_OK) else Directory.READ_ONLY


def can_make(directory: Path) -> bool:
    """Whether we can write in `directory`, or could make it. Makes nothing. A read-only mount counts as no."""
    for existing in (directory, *directory.parents):
        try:
            is_directory = stat.S_ISDIR(existing.stat().st_mode)
        except FileNotFoundError:
            continue
        except OSError:
            return False
        return is_directory and os.access(existing, os.W_OK | os.X_OK)
    return False


def others_can_write(path: Path, *, trusted_owners: frozenset[int] = frozenset(), anchor: Path | None = None) -> bool:
    """Whether somebody but us and root could change what `path` leads to.

    Looks at the file, at every directory above its real path, and at every directory above the path as written (who can
    write there can put another link in its place). Others can write where the owner is somebody else, where the world
    may write, or where a group may that is neither ours alone nor one of administrators. A world-writable directory
    with the sticky bit (`/tmp`) is fine above an entry, since only an entry's owner can replace it. A path that
    cannot be examined counts as writable. `trusted_owners` are further user ids. `anchor` and the directories above it
    are not examined: our code runs from there, so another user who can write there controls us already.
    """
    trusted = trusted_owners | {0, os.geteuid()}
    try:
        real = Path(os.path.realpath(path))
        directories = {*real.parents, *Path(os.path.abspath(path)).parents} - _at_or_above(anchor)
        return _open_to_others(real.lstat(), trusted) or any(
            _open_to_others(directory.stat(), trusted, sticky_is_fine=True) for directory in directories
        )
    except (OSError, ValueError):
        return True


def private_directory(path: Path, *, anchor: Path | None = None) -> bool:
    """Make `path` a directory of this user with mode 0700, and return whether it is one now.

    An existing directory with wider permissions or another owner, or a symbolic link, is refused and not repaired:
    another user could have put files into it that we would trust later. For `anchor` see `others_can_write`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        seen = path.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(seen.st_mode) and stat.S_IMODE(seen.st_mode) == 0o700 and seen.st_uid == os.geteuid()
    return ours and not others_can_write(path, anchor=anchor)


def _at_or_above(anchor: Path | None) -> set[Path]:
    if anchor is None:
        return set()
    written, real = Path(os.path.abspath(anchor)), Path(os.path.realpath(anchor))
    return {written, real, *written.parents, *real.parents}


def _open_to_others(seen: os.stat_result, trusted: frozenset[int], *, sticky_is_fine: bool = False) -> bool:
    if seen.st_uid not in trusted:
        return True
    if sticky_is_fine and seen.st_mode & stat.S_ISVTX:
        return False
    if seen.st_mode & stat.S_IWOTH:
        return True
    return bool(seen.st_mode & stat.S_IWGRP) and not _group_is_trusted(seen.st_gid)


def _group_is_trusted(gid: int) -> bool:
    """Root's group, one of administrators, or the private group that many systems give to each user."""
    if gid == 0:
        return True
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    private = user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return private or group.gr_name in _ADMINISTRATORS
