"""The directory with setup's lock, its records and its directory to look from. It must be ours alone."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from pi_session_mcp.platform.files import others_can_write, sync_directory
from pi_session_mcp.setup.clients.neutral import make_top_of_repository
from pi_session_mcp.setup.result import SetupCode, Stopped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pi_session_mcp.setup.system import System

NEUTRAL: Final = "inspect"
"""The name of the directory from which user scopes are seen. It is kept: clients remember where they ran."""
LOCK: Final = "setup.lock"
_OWN_NAMES: Final = 2
"""How many of the last names in the path we make: our directory, and setup's in it."""


def state_directory(environ: Mapping[str, str]) -> Path:
    """Setup's own directory in the platform's state directory. Raises `Stopped` without a usable `HOME`."""
    if not os.path.isabs(environ.get("HOME", "")):
        raise Stopped(SetupCode.HOME_UNAVAILABLE)
    from platformdirs import user_state_path

    directory = user_state_path("pi-session-mcp", appauthor=False) / "setup"
    if not directory.is_absolute():
        raise Stopped(SetupCode.STATE_DIRECTORY_UNSAFE)
    return directory


def make_state_directory(directory: Path) -> None:
    """Make `directory` and the one to look from in it, durably, with mode 0700. Raises `Stopped`.

    What exists is judged and not changed: others could have put something into it already.
    """
    require_safe(directory)
    try:
        _make(directory)
        require_safe(directory)
        _make(directory / NEUTRAL)
        make_top_of_repository(directory / NEUTRAL)
    except OSError:
        raise Stopped(SetupCode.STATE_DIRECTORY_UNAVAILABLE) from None


def require_safe(directory: Path) -> None:
    """Raise `Stopped` if other users could put anything there; see `is_safe`. Makes nothing."""
    try:
        safe = is_safe(directory)
    except OSError:
        safe = False
    if not safe:
        raise Stopped(SetupCode.STATE_DIRECTORY_UNSAFE)


def require_locks(directory: Path, system: System) -> None:
    """Raise `Stopped` unless locks exclude other processes on the file system of `directory`."""
    if not system.trusts_locks(nearest_directory(directory)):
        raise Stopped(SetupCode.FILESYSTEM_UNSUPPORTED)


def nearest_directory(directory: Path) -> Path:
    """The nearest directory that exists, at `directory` or above it."""
    existing = _nearest(directory)
    return existing if stat.S_ISDIR(existing.lstat().st_mode) else existing.parent


def is_safe(directory: Path) -> bool:
    """Whether only we and root can put anything there, or in its way if it does not exist yet. Raises `OSError`.

    `directory` and its parent must be ours, no links and private, if they exist.
    """
    existing = _nearest(directory)
    own = [path for path in (directory, *directory.parents)[:_OWN_NAMES] if os.path.lexists(path)]
    if not all(_is_ours(path, open_bits=0o077 if path == directory else 0o022) for path in own):
        return False
    # `existing` may be far above. Under sudo it may be the home of another user, where we make no directories.
    return not others_can_write(existing)


def _is_ours(path: Path, *, open_bits: int) -> bool:
    seen = path.lstat()
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not stat.S_IMODE(seen.st_mode) & open_bits


def _make(directory: Path) -> None:
    """Make what is missing of `directory`. Each name is durable before anything is made below it."""
    missing = [path for path in (directory, *directory.parents) if not os.path.lexists(path)]
    for path in reversed(missing):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue  # another process was faster, and the result is judged afterwards
        os.chmod(path, 0o700)  # the umask may have taken some of it
        sync_directory(path)
        sync_directory(path.parent)


def _nearest(directory: Path) -> Path:
    """What exists, at `directory` or above it."""
    return next(path for path in (directory, *directory.parents) if os.path.lexists(path))
