"""Finds a directory for temporary files when the environment names an unusable one."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from pi_session_mcp.platform.text import utf8_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES: Final = ("TMPDIR", "TMP", "TEMP")
"""The variables in the order in which Node reads them (`os.tmpdir`). Most programs read only the first."""
_USUAL: Final = ("/tmp", "/var/tmp")


def named_temporary_directory(environ: Mapping[str, str]) -> str:
    """The directory that the environment names, or the usual one if it names none."""
    return next((environ[name] for name in _VARIABLES if environ.get(name)), _USUAL[0])


def is_usable(directory: str) -> bool:
    """Whether files can be made there now: an absolute path of a writable directory with room. Writes nothing.

    A path that is not UTF-8 does not count, because Node cannot use it.
    """
    if not os.path.isabs(directory) or utf8_text(directory) is None:
        return False
    try:
        is_directory = stat.S_ISDIR(os.stat(directory).st_mode)
        space = os.statvfs(directory)
    except (OSError, ValueError):
        return False
    has_room = space.f_bavail > 0 and (space.f_favail > 0 or space.f_files == 0)
    return is_directory and has_room and os.access(directory, os.R_OK | os.W_OK | os.X_OK)


def with_usable_temporary_directory(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables. If the named directory is not usable and a usual one is, `TMPDIR` names the usual one."""
    named = named_temporary_directory(environ)
    instead = next((one for one in (named, *_USUAL) if is_usable(one)), named)
    return dict(environ) if instead == named else {**environ, "TMPDIR": instead}
