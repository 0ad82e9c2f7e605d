"""Where temporary files can be kept, whatever the environment says."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from pi_session_mcp.platform.text import utf8_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES: Final = ("TMPDIR", "TMP", "TEMP")
"""In the order in which Node asks them (`os.tmpdir`); most programs ask the first alone."""
_USUAL: Final = ("/tmp", "/var/tmp")


def named_temporary_directory(environ: Mapping[str, str]) -> str:
    """The directory that a program takes which believes its environment."""
    return next((environ[name] for name in _VARIABLES if environ.get(name)), _USUAL[0])


def is_usable(directory: str) -> bool:
    """Whether files can be made there now: an absolute path of a directory, writable, with room. Writes nothing.

    One whose name is not UTF-8 is none for Node, which would look for another.
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
    """The same variables, and `TMPDIR` names a usual directory when the named one is not usable and that one is."""
    named = named_temporary_directory(environ)
    instead = next((one for one in (named, *_USUAL) if is_usable(one)), named)
    return dict(environ) if instead == named else {**environ, "TMPDIR": instead}
