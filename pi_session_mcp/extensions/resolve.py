"""From a pin to the files that Pi loads, by reading files only.

Nothing is run, imported, installed or fetched here. Blocking: an event loop calls it in a thread.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.platform.paths import is_below

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pi_session_mcp.extensions.outcomes import Fault
    from pi_session_mcp.extensions.pin import Pin

MAX_MANIFEST_BYTES: Final = 1024 * 1024
_MANIFEST: Final = "package.json"
# Without O_NONBLOCK, opening a FIFO would wait for a writer; the descriptor's kind is only known once it is open.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_OVERRIDES: Final = ("!", "+", "-")
_GLOBS: Final = frozenset("*?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where Pi keeps what it has installed, and where nothing that we load may lie."""

    agent_directory: Path
    workspaces: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """A file as it was: two that are equal have not been replaced or rewritten, as far as the file system tells."""

    device: int
    inode: int
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that Pi loads: its real path."""

    path: Path
    identity: Identity


@dataclass(frozen=True, slots=True)
class Resolved:
    """An installed extension: its real package directory and what of it Pi loads, in the manifest's order."""

    pin: Pin
    directory: Path
    manifest: Identity
    entries: tuple[Entry, ...]


class _Broken(Exception):  # noqa: N818 - an expected finding
    """What was found is no installation of the pin; becomes a `Refusal`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


def resolve(pin: Pin, place: Place) -> Resolved:
    """The files of the pinned extension.

    Raises `Refusal` with `extension_not_installed`, `extension_version_mismatch` or `extension_load_failed`, which
    names the extension and nothing that was read.
    """
    try:
        return _resolve(pin, place)
    except _Broken as broken:
        code = broken.fault
    except (OSError, ValueError, RecursionError):
        # Unreadable, a path that no file can have, no JSON, or nested beyond reason: fail closed.
        code = Code.EXTENSION_LOAD_FAILED
    raise Refusal(code, stage=Stage.EXTENSION_RESOLVE, extension=str(pin)) from None


def resolve_all(pins: Iterable[Pin], place: Place) -> tuple[Resolved, ...]:
    """Every pin's files, in order. Raises as `resolve`, for the first that cannot be had."""
    return tuple(resolve(pin, place) for pin in pins)


def confirm_unchanged(resolved: Iterable[Resolved], place: Place) -> None:
    """Raise `Refusal(EXTENSION_VERSION_MISMATCH)` if an extension is no longer the one that was resolved.

    An update between resolving and loading would otherwise run a version that nobody has pinned.
    """
    for before in resolved:
        try:
            unchanged = resolve(before.pin, place) == before
        except Refusal:
            unchanged = False
        if not unchanged:
            code = Code.EXTENSION_VERSION_MISMATCH
            raise Refusal(code, stage=Stage.EXTENSION_LOAD, extension=str(before.pin))


def _resolve(pin: Pin, place: Place) -> Resolved:
    installed = place.agent_directory / "npm" / "node_modules" / pin.name
    if not _is_there(installed):
        raise _Broken(Code.EXTENSION_NOT_INSTALLED)
    directory = Path(os.path.realpath(installed, strict=True))
    manifest, identity = _read_manifest(directory / _MANIFEST)
    if manifest.get("version") != pin.version:
        raise _Broken(Code.EXTENSION_VERSION_MISMATCH)
    if manifest.get("name") != pin.name:
        _refuse()
    if any(is_below(directory, workspace) for workspace in place.workspaces):
        _refuse()  # a session could rewrite the code that the next one runs with the user's rights
    return Resolved(pin, directory, identity, _entries(manifest, directory))


def _is_there(installed: Path) -> bool:
    """Whether there is a directory with something called `package.json`. Raises `OSError` when nobody can tell."""
    try:
        found = stat.S_ISDIR(installed.stat().st_mode)
        (installed / _MANIFEST).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return found


def _read_manifest(path: Path) -> tuple[dict[str, Any], Identity]:
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > MAX_MANIFEST_BYTES:
            _refuse()
        text = file.read(MAX_MANIFEST_BYTES + 1)
    # Some editors begin a file with a byte order mark; npm and Pi do not mind it.
    manifest = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse)
    if not isinstance(manifest, dict):
        _refuse()
    return manifest, _identity(seen)


def _entries(manifest: dict[str, Any], directory: Path) -> tuple[Entry, ...]:
    section = manifest.get("pi")
    declared = section.get("extensions") if isinstance(section, dict) else None
    if not isinstance(declared, list) or not declared:
        _refuse()
    entries = tuple(_entry(name, directory) for name in declared)
    if len({entry.path for entry in entries}) != len(entries):
        _refuse()  # Pi would load one of them, and nobody could tell that from one that did not load
    return entries


def _entry(name: object, directory: Path) -> Entry:
    if not isinstance(name, str) or not _is_plain(name):
        _refuse()
    path = Path(os.path.realpath(directory / name, strict=True))
    seen = path.stat()
    if not path.is_relative_to(directory) or not stat.S_ISREG(seen.st_mode) or not os.access(path, os.R_OK):
        _refuse()
    return Entry(path, _identity(seen))


def _is_plain(name: str) -> bool:
    """Whether an entry names one file below the package: Pi would read the rest as patterns, or follow it out."""
    if not name or name.startswith(("/", *_OVERRIDES)) or _GLOBS.intersection(name):
        return False
    return ".." not in name.split("/")


def _identity(seen: os.stat_result) -> Identity:
    return Identity(seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)


def _refuse(_constant: str = "") -> NoReturn:
    raise _Broken(Code.EXTENSION_LOAD_FAILED)
