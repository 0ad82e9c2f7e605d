"""This package: whether it is still as its installer left it. Only files are read.

`importlib.metadata` is not used: it is slow to import, it hangs at a FIFO, and it mistakes a directory of the same
name of another package for ours.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from pi_session_mcp.doctor.subject import OK, Check, Subject, Unseen, error, found, up_to, warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pi_session_mcp.doctor.installation import Installation

REINSTALL: Final = "Reinstall pi-session-mcp with the installer that you used."
PACKAGE_METADATA_UNREADABLE: Final = error(
    "package_metadata_unreadable",
    "package metadata",
    "readable",
    "missing or damaged",
    "What the installer wrote about this package (`METADATA`, `RECORD`) is not there, or is not what it should be.",
    REINSTALL,
)
PACKAGE_MODIFIED: Final = warning(
    "package_modified",
    "package files",
    "unchanged",
    "changed since the installation",
    "A file of this package is missing or differs from what was installed. Files that installers write "
    "themselves, such as the program in `bin`, are not compared, and neither are editable installs.",
    REINSTALL,
)
ROWS: Final = (PACKAGE_METADATA_UNREADABLE, PACKAGE_MODIFIED)
_DIRECTORIES: Final = "pi_session_mcp-*.dist-info"
_MAX_METADATA_BYTES: Final = 4 * 1024 * 1024
_MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_NAME: Final = re.compile(r"pi[-_.]session[-_.]mcp", re.IGNORECASE)
_REQUIRES: Final = re.compile(r">=\s*(\d{1,3})\.(\d{1,3})", re.ASCII)
_PACKAGE: Final = "pi_session_mcp"
_RELEASED: Final = frozenset({"METADATA", "entry_points.txt"})
_ALGORITHMS: Final = frozenset({"sha256", "sha384", "sha512"})


@dataclass(frozen=True, slots=True)
class Package:
    """What the installer left. `requires` is the oldest Python that the metadata allow, if they name one."""

    metadata_readable: bool
    requires: tuple[int, int] | None = None
    modified: bool = False


def _look(here: Installation) -> Package | Unseen:
    return here.package


def _verdict(package: Package) -> Iterator[Check]:
    if package.metadata_readable:
        yield from up_to(ROWS, PACKAGE_MODIFIED.id if package.modified else OK)
    else:
        yield found(PACKAGE_METADATA_UNREADABLE)


def look_at_package(root: Path | None = None, search: Sequence[str] | None = None) -> Package:
    """What the installer wrote down about the package in `root`, and whether its files are still so.

    `search` are the directories where an editable install has its metadata (`sys.path`).
    """
    root = root or Path(__file__).parents[3]
    beside = sorted(root.glob(_DIRECTORIES))
    if len(beside) > 1:  # an upgrade that broke off: it is unknown which one counts
        return Package(metadata_readable=False)
    if beside:
        return _installed(beside[0], root)
    editable = _editable(root, sys.path if search is None else search)
    return Package(metadata_readable=False) if editable is None else _stated(editable)


def _installed(information: Path, root: Path) -> Package:
    stated = _stated(information)
    record = _record(information)
    if not stated.metadata_readable or record is None:
        return Package(metadata_readable=False)
    modified = not all(_is_as_recorded(root / path, stated_hash) for path, stated_hash in record)
    return Package(metadata_readable=True, requires=stated.requires, modified=modified)


def _editable(root: Path, search: Sequence[str]) -> Path | None:
    for entry in search:
        for information in sorted(Path(entry).glob(_DIRECTORIES)) if entry else ():
            if _is_editable(information, root):
                return information
    return None


def _is_editable(information: Path, root: Path) -> bool:
    """Whether it belongs to an editable install of the sources in `root`."""
    try:
        said = json.loads(_read(information / "direct_url.json", _MAX_METADATA_BYTES))
        project = Path(unquote(urlsplit(said["url"]).path)).resolve()
        return said["dir_info"]["editable"] is True and root.resolve().is_relative_to(project)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, RuntimeError):
        return False


def _stated(information: Path) -> Package:
    """What the head of `METADATA` says."""
    try:
        text = _read(information / "METADATA", _MAX_METADATA_BYTES).decode()
    except (OSError, ValueError):
        return Package(metadata_readable=False)
    fields = dict(_fields(text))
    if not _NAME.fullmatch(fields.get("name", "")) or not fields.get("version"):
        return Package(metadata_readable=False)
    oldest = _REQUIRES.search(fields.get("requires-python", ""))
    return Package(metadata_readable=True, requires=(int(oldest[1]), int(oldest[2])) if oldest else None)


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            return
        yield name.lower(), value.strip()


def _record(information: Path) -> list[tuple[str, str]] | None:
    """Path and hash of every file that has one; `None` when `RECORD` is missing or damaged."""
    try:
        text = _read(information / "RECORD", _MAX_METADATA_BYTES).decode()
        rows = list(csv.reader(text.splitlines(), strict=True))
    except (OSError, ValueError, csv.Error):
        return None
    if any(len(row) != 3 for row in rows) or "pi_session_mcp/__init__.py" not in {row[0] for row in rows}:
        return None
    return [(path, stated) for path, stated, _size in rows if stated and _is_ours(path)]


def _is_ours(path: str) -> bool:
    """Whether a file must be as it was released.

    Installers write programs of their own (`bin`) and change their first lines, add notes beside the metadata, compile
    modules, and pack or move files outside of the package.
    """
    directory, _, name = os.path.normpath(path).partition("/")
    if directory == _PACKAGE:
        return not name.endswith(".pyc")
    return directory.endswith(".dist-info") and name in _RELEASED


def _is_as_recorded(path: Path, stated: str) -> bool:
    algorithm, _, expected = stated.partition("=")
    if algorithm not in _ALGORITHMS:
        return False
    try:
        content = _read(path, _MAX_FILE_BYTES)
    except (OSError, ValueError):
        return False
    found = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest())
    return found.rstrip(b"=").decode() == expected.rstrip("=")


def _read(path: Path, max_bytes: int) -> bytes:
    from pi_session_mcp.platform.reading import read_regular

    return read_regular(path, max_bytes=max_bytes)


SUBJECT: Final = Subject(ROWS, _look, _verdict)
