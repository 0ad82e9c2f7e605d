"""Finds the files that Pi loads for a pin, by reading files only.

Nothing is run, imported, installed or fetched here. It blocks, so an event loop calls it in a thread.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.extensions.dependencies import condition_of_dependencies
from pi_session_mcp.extensions.entries import extension_files
from pi_session_mcp.extensions.manifest import MANIFEST, Identity, identity_of, read_manifest
from pi_session_mcp.extensions.outcomes import VERDICTS, Condition, Unusable
from pi_session_mcp.platform.paths import is_below

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pi_session_mcp.terms.pin import Pin

_UNREADABLE: Final = (OSError, ValueError, RecursionError)
"""The file cannot be read, no file can have that path, or it is no JSON, or nested too deep. All of that is refused."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where Pi keeps what it has installed, and the directories from which nothing may be loaded."""

    agent_directory: Path
    workspaces: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that Pi loads: its real path."""

    path: Path
    identity: Identity


@dataclass(frozen=True, slots=True)
class Resolved:
    """An installed extension: its real package directory and the files that Pi loads, in Pi's order."""

    pin: Pin
    directory: Path
    manifest: Identity
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found of a pin. `resolved` is set if a session can have it, and `condition` if something is to be said.

    The server, `extensions check` and the doctor all judge by this.
    """

    resolved: Resolved | None
    condition: Condition | None


def judge(pin: Pin, place: Place) -> Judgement:
    """Look at what is installed under the pin's name. Raises nothing."""
    try:
        resolved, manifest = _resolve(pin, place)
        condition = condition_of_dependencies(manifest, resolved.directory, place.agent_directory, place.workspaces)
    except Unusable as unusable:
        return Judgement(None, unusable.condition)
    except _UNREADABLE:
        return Judgement(None, Condition.BROKEN)
    return Judgement(None if condition is Condition.IN_WORKSPACE else resolved, condition)


def resolve(pin: Pin, place: Place) -> Resolved:
    """The files of the pinned extension.

    Raises `Refusal` with `extension_not_installed`, `extension_version_mismatch` or `extension_load_failed`. It names
    the extension and contains nothing that was read.
    """
    judgement = judge(pin, place)
    if judgement.resolved is None:
        fault = None if judgement.condition is None else VERDICTS[judgement.condition].fault
        raise Refusal(fault or Code.EXTENSION_LOAD_FAILED, stage=Stage.EXTENSION_RESOLVE, extension=str(pin))
    return judgement.resolved


def resolve_all(pins: Iterable[Pin], place: Place) -> tuple[Resolved, ...]:
    """The files of every pin, in order. Raises what `resolve` raises, for the first pin that has none."""
    return tuple(resolve(pin, place) for pin in pins)


def confirm_unchanged(resolved: Iterable[Resolved], place: Place) -> None:
    """Raise `Refusal(EXTENSION_VERSION_MISMATCH)` if an extension is no longer the one that was resolved.

    Without this, an update between resolving and loading would run a version that is not pinned.
    """
    for before in resolved:
        try:
            is_unchanged = _resolve(before.pin, place)[0] == before
        except (Unusable, *_UNREADABLE):
            is_unchanged = False
        if not is_unchanged:
            code = Code.EXTENSION_VERSION_MISMATCH
            raise Refusal(code, stage=Stage.EXTENSION_LOAD, extension=str(before.pin))


def _resolve(pin: Pin, place: Place) -> tuple[Resolved, dict[str, Any]]:
    """The files of the pin, and its manifest. Raises `Unusable` or one of `_UNREADABLE`."""
    installed = place.agent_directory / "npm" / "node_modules" / pin.name
    if not _is_there(installed):
        _refuse(Condition.MISSING)
    directory = Path(os.path.realpath(installed, strict=True))
    manifest, identity = read_manifest(directory)
    if manifest.get("version") != pin.version:
        _refuse(Condition.VERSION_MISMATCH)
    if manifest.get("name") != pin.name:
        _refuse(Condition.BROKEN)
    if any(is_below(directory, workspace) for workspace in place.workspaces):
        _refuse(Condition.IN_WORKSPACE)  # a session could rewrite the code that the next session runs with our rights
    entries = tuple(_entry(path) for path in extension_files(manifest, directory, installed))
    return Resolved(pin, directory, identity, entries), manifest


def _is_there(installed: Path) -> bool:
    """Whether there is a directory with a `package.json`. Raises `OSError` when that cannot be known."""
    try:
        found = stat.S_ISDIR(installed.stat().st_mode)
        (installed / MANIFEST).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return found


def _entry(path: Path) -> Entry:
    return Entry(path, identity_of(path.stat()))


def _refuse(condition: Condition) -> NoReturn:
    raise Unusable(condition)
