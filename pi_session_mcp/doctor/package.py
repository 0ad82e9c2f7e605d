"""Whether this package is as its installer left it. Reads files only.

`importlib.metadata` is not used: it is slow to import, it waits for a FIFO, and it takes another package's directory
of the same name for ours.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from pi_session_mcp.doctor.facts import Package
from pi_session_mcp.platform.reading import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DIRECTORIES: Final = "pi_session_mcp-*.dist-info"
_MAX_METADATA_BYTES: Final = 4 * 1024 * 1024
_MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_NAME: Final = re.compile(r"pi[-_.]session[-_.]mcp", re.IGNORECASE)
_REQUIRES: Final = re.compile(r">=\s*(\d{1,3})\.(\d{1,3})", re.ASCII)
_PACKAGE: Final = "pi_session_mcp"
_RELEASED: Final = frozenset({"METADATA", "entry_points.txt"})
_ALGORITHMS: Final = frozenset({"sha256", "sha384", "sha512"})


def look_at_package(root: Path | None = None, search: Sequence[str] | None = None) -> Package:
    """What the installer wrote down about the package in `root`, and whether its files are still so.

    `search` are the directories where an editable install has its metadata (`sys.path`).
    """
    root = root or Path(__file__).parents[2]
    beside = sorted(root.glob(_DIRECTORIES))
    if len(beside) > 1:  # an upgrade that broke off: nobody can say which one counts
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
        said = json.loads(read_regular(information / "direct_url.json", max_bytes=_MAX_METADATA_BYTES))
        project = Path(unquote(urlsplit(said["url"]).path)).resolve()
        return said["dir_info"]["editable"] is True and root.resolve().is_relative_to(project)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, RuntimeError):
        return False


def _stated(information: Path) -> Package:
    """What `METADATA` says: its head is enough."""
    try:
        text = read_regular(information / "METADATA", max_bytes=_MAX_METADATA_BYTES).decode()
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
        text = read_regular(information / "RECORD", max_bytes=_MAX_METADATA_BYTES).decode()
        rows = list(csv.reader(text.splitlines(), strict=True))
    except (OSError, ValueError, csv.Error):
        return None
    if any(len(row) != 3 for row in rows) or "pi_session_mcp/__init__.py" not in {row[0] for row in rows}:
        return None
    return [(path, stated) for path, stated, _size in rows if stated and _is_ours(path)]


def _is_ours(path: str) -> bool:
    """Whether a file holds what was released, so that nobody but us has a reason to change it.

    Installers write programs of their own (`bin`), rewrite their first lines afterwards, note what they did beside
    the metadata, compile, and pack or move what lies outside of the package.
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
        content = read_regular(path, max_bytes=_MAX_FILE_BYTES)
    except (OSError, ValueError):
        return False
    found = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest())
    return found.rstrip(b"=").decode() == expected.rstrip("=")
