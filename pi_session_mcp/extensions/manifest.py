"""Reads a package's manifest, `package.json`, which somebody else wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pi_session_mcp.extensions.outcomes import Condition, Unusable
from pi_session_mcp.platform.reading import NotRegular, TooLarge, read_seen

if TYPE_CHECKING:
    import os
    from pathlib import Path

MANIFEST: Final = "package.json"
MAX_MANIFEST_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Identity:
    """A file as it was. Two that are equal have not been replaced or rewritten, as far as the file system tells."""

    device: int
    inode: int
    size: int
    modified_ns: int


def identity_of(seen: os.stat_result) -> Identity:
    """The identity of the file that was seen."""
    return Identity(seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)


def read_manifest(directory: Path) -> tuple[dict[str, Any], Identity]:
    """The manifest of the package in `directory`, and which file it was.

    Raises `Unusable` when it is no regular file, too large or no object. Else raises `OSError`, `ValueError` or
    `RecursionError`.
    """
    try:
        text, seen = read_seen(directory / MANIFEST, max_bytes=MAX_MANIFEST_BYTES)
    except (NotRegular, TooLarge):
        _refuse()
    # Some editors begin a file with a byte order mark, which npm and Pi accept.
    manifest = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse)
    if not isinstance(manifest, dict):
        _refuse()
    return manifest, identity_of(seen)


def _refuse(_constant: str = "") -> NoReturn:
    raise Unusable(Condition.BROKEN)
