"""From a pin to the files that Pi loads, by reading files only.

Nothing is run, imported, installed or fetched here. Blocking: an event loop calls it in a thread.
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
"""Not to be read, a path that no file can have, no JSON, or nested beyond reason: fail closed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where Pi keeps what it has installed, and where nothing that we load may lie."""

    agent_directory: Path
    workspaces: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that Pi loads: its real path."""

    path: Path
    identity: Identity


@dataclass(frozen=True, slots=True)
class Resolved:
    """An installed extension: its real package directory and what of it Pi loads, in Pi's order."""

    pin: Pin
    directory: Path
    manifest: Identity
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found of a pin. `resolved` is set when a session can have it; `condition` when something is to be said.

    The one judgement of the server, `extensions check` and the doctor.
    """

    resolved: Resolved | None
    condition: Condition | None


def judge(pin: Pin, place: Place) -> Judgement:
    """Look at what is installed under the pin's name. Never raises."""
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

    Raises `Refusal` with `extension_not_installed`, `extension_version_mismatch` or `extension_load_failed`, which
    names the extension and nothing that was read.
    """
    judgement = judge(pin, place)
    if judgement.resolved is None:
        fault = None if judgement.condition is None else VERDICTS[judgement.condition].fault
        raise Refusal(fault or Code.EXTENSION_LOAD_FAILED, stage=Stage.EXTENSION_RESOLVE, extension=str(pin))
    return judgement.resolved


def resolve_all(pins: Iterable[Pin], place: Place) -> tuple[Resolved, ...]:
    """Every pin's files, in order. Raises as `resolve`, for the first that cannot be had."""
    return tuple(resolve(pin, place) for pin in pins)


def confirm_unchanged(resolved: Iterable[Resolved], place: Place) -> None:
    """Raise `Refusal(EXTENSION_VERSION_MISMATCH)` if an extension is no longer the one that was resolved.

    An update between resolving and loading would otherwise run a version that nobody has pinned.
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
        _refuse(Condition.IN_WORKSPACE)  # a session could rewrite the code that the next one runs with our rights
    entries = tuple(_entry(path) for path in extension_files(manifest, directory, installed))
    return Resolved(pin, directory, identity, entries), manifest


def _is_there(installed: Path) -> bool:
    """Whether there is a directory with something called `package.json`. Raises `OSError` when nobody can tell."""
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
