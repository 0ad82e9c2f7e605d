"""What this program runs on: the Python, the operating system and the directory for temporary files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.subject import Check, Subject, Unseen, error, fine, found, warning
from pi_session_mcp.platform.supported import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.doctor.installation import Installation

PYTHON_VERSION_UNSUPPORTED: Final = error(
    "python_version_unsupported",
    "Python",
    "supported version",
    "version is too old",
    "This program runs on an older Python than its package requires.",
    "Install pi-session-mcp in an environment whose Python is 3.11 or newer.",
)
PLATFORM_UNSUPPORTED: Final = warning(
    "platform_unsupported",
    "platform",
    "supported",
    "not supported",
    "The operating system is neither Linux nor macOS. Registering with a client is refused here.",
    "Use Linux or macOS; elsewhere nothing is tested and no client is registered.",
)
TEMPORARY_DIRECTORY_UNUSABLE: Final = warning(
    "temporary_directory_unusable",
    "temporary directory",
    "usable",
    "not usable",
    "The directory that `TMPDIR` names, or without it `TMP` or `TEMP`, or else `/tmp`, does not exist, is no "
    "directory, is not named by an absolute path, cannot be written in, or has no room. Sessions use `/tmp` or "
    "`/var/tmp` instead, if one of these can be used; other programs may fail. A client may pass on another "
    "`TMPDIR` than this terminal has.",
    "Let TMPDIR (or TMP or TEMP, whichever is set first) name a directory that you can write in, "
    "by its absolute path and on a file system with room, or unset it.",
)
MINIMUM_PYTHON: Final = (3, 11)
"""What the package requires, in case its metadata do not say it."""


@dataclass(frozen=True, slots=True)
class System:
    """Versions are major and minor. `oldest_python` is what the package's metadata require, if they say it."""

    python: tuple[int, int]
    platform: str
    oldest_python: tuple[int, int] | None = None


def _look(here: Installation) -> System:
    package = here.package
    oldest = None if isinstance(package, Unseen) else package.requires
    return System(sys.version_info[:2], here.platform, oldest)


def _verdict(seen: System) -> Iterator[Check]:
    is_old = seen.python < (seen.oldest_python or MINIMUM_PYTHON)
    yield found(PYTHON_VERSION_UNSUPPORTED) if is_old else fine(PYTHON_VERSION_UNSUPPORTED)
    yield fine(PLATFORM_UNSUPPORTED) if seen.platform in SUPPORTED else found(PLATFORM_UNSUPPORTED)


def _look_at_temporary_directory(here: Installation) -> bool:
    from pi_session_mcp.platform.temporary import is_usable, named_temporary_directory

    return is_usable(named_temporary_directory(here.environ))


def _verdict_on_temporary_directory(is_usable: bool) -> Iterator[Check]:  # noqa: FBT001 - a fact, not a flag
    yield fine(TEMPORARY_DIRECTORY_UNUSABLE) if is_usable else found(TEMPORARY_DIRECTORY_UNUSABLE)


SYSTEM: Final = Subject((PYTHON_VERSION_UNSUPPORTED, PLATFORM_UNSUPPORTED), _look, _verdict)
TEMPORARY_DIRECTORY: Final = Subject(
    (TEMPORARY_DIRECTORY_UNUSABLE,), _look_at_temporary_directory, _verdict_on_temporary_directory
)
