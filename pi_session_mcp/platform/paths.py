"""Where the operating system keeps a person's files."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def home_directory(environ: Mapping[str, str]) -> Path | None:
    """The home directory: `HOME` when it is an absolute path other than `/`, else what the user database says.

    Clients start servers with `HOME` unset, empty or wrong, and a service user's home may be `/`. A path made from
    such a value would be relative or lie at the root of the file system, so those count as no home: `None`.
    """
    return _usable(environ.get("HOME", "")) or _usable(_home_in_user_database())


def working_directory() -> Path:
    """Where this process runs. If that was deleted or cannot be entered: a place that nothing is below."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.devnull)


def fixed_data_directory(home: Path, *, platform: str = sys.platform) -> Path:
    """Our data directory below `home`.

    It is fixed. `XDG_DATA_HOME` does not count, because clients do not pass it on: what an operator installs in a
    terminal must be found by the server that a client starts.
    """
    if platform == "darwin":
        return home / "Library" / "Application Support" / "pi-session-mcp"
    return home / ".local" / "share" / "pi-session-mcp"


def is_below(path: Path, directory: Path) -> bool:
    """Whether `path` is `directory` or lies below it, as written or after symbolic links are resolved."""
    written = Path(os.path.normpath(path)), Path(os.path.normpath(directory))
    real = Path(os.path.realpath(path)), Path(os.path.realpath(directory))
    return any(inner.is_relative_to(outer) for inner in (written[0], real[0]) for outer in (written[1], real[1]))


def _usable(home: str) -> Path | None:
    if not os.path.isabs(home) or "\0" in home:
        return None
    # POSIX lets two leading slashes mean something else, so normpath keeps them: "//" is the root as well.
    normal = Path("/" + os.path.normpath(home).lstrip("/"))
    return None if normal == Path("/") else normal


def _home_in_user_database() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container's numeric user without an entry
        return ""
