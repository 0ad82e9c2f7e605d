"""The extensions that the profiles pin, as they are installed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.subject import OK, PIN, UNCHECKED, Check, Subject, Unseen, error, survive, up_to, warning
from pi_session_mcp.doctor.subjects.agent_directory import AGENT_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.doctor.installation import Installation

INSTALL_EXTENSION: Final = "Install the pinned version with Pi: pi install npm:<name>@<version>."
EXTENSION_MISSING: Final = error(
    "extension_missing",
    PIN,
    "installed",
    "not installed",
    "A profile pins an extension that is not installed in Pi's agent directory.",
    INSTALL_EXTENSION,
    AGENT_DIRECTORY,
)
EXTENSION_VERSION_MISMATCH: Final = error(
    "extension_version_mismatch",
    PIN,
    "version as pinned",
    "another version than the pinned one",
    "The installed extension has another version than the pin.",
    "Install the pinned version with Pi, or pin the version that is installed.",
)
EXTENSION_IN_WORKSPACE: Final = error(
    "extension_in_workspace",
    PIN,
    "outside of the workspaces",
    "files lie in a workspace",
    "The package, or one that it depends on, lies inside a workspace, perhaps by way of a link. A session could "
    "rewrite the code that the next session runs.",
    "Keep Pi's agent directory, and what its packages are linked to, outside of every workspace.",
)
EXTENSION_BROKEN: Final = error(
    "extension_broken",
    PIN,
    "whole",
    "damaged",
    "The package's manifest cannot be read, is not JSON or names another package, or what `pi.extensions` lists is "
    "not there or cannot be read.",
    "Remove the package with Pi and install it again; if it stays broken, pin another version.",
)
EXTENSION_FORM_UNSUPPORTED: Final = error(
    "extension_form_unsupported",
    PIN,
    "of a supported form",
    "of a form that is not supported",
    "The package declares its extensions in a way that this program does not load although Pi may: by a path that "
    "leads out of the package, by a pattern with classes, braces or parentheses, or in a folder with rules about "
    "what to ignore. [Which forms load](extensions.md#which-files-of-a-package-are-loaded).",
    "Take the pin out of the profile, or pin a version that declares its extensions in a supported form.",
)
PACKAGE_WITHOUT_EXTENSION: Final = error(
    "package_without_extension",
    PIN,
    "has an extension",
    "has no extension in it",
    "The package is installed as pinned and there is no extension in it, as in a package of skills only.",
    "Take the pin out of the profile: skills, prompt templates and themes of a package are not loaded.",
)
EXTENSION_DEPENDENCY_MISSING: Final = warning(
    "extension_dependency_missing",
    PIN,
    "dependencies found",
    "a dependency is missing",
    "Node would not find a package that the extension, or one of its dependencies, declares as a dependency. A "
    "session is refused with `extension_load_failed` if the extension imports it while it loads.",
    "Remove the package with Pi and install it again, so that its dependencies are installed with it.",
)
EXTENSION_DEPENDENCY_OUTSIDE: Final = warning(
    "extension_dependency_outside",
    PIN,
    "dependencies beside it",
    "a dependency lies elsewhere",
    "The package is in Pi's agent directory, and one that it depends on is found outside of it: by a link, or in "
    "a `node_modules` further up. Sessions start, with whatever is found there.",
    "Remove the package with Pi and install it again, so that its dependencies are copies and not links.",
)
ROWS: Final = (
    EXTENSION_MISSING,
    EXTENSION_VERSION_MISMATCH,
    EXTENSION_IN_WORKSPACE,
    EXTENSION_BROKEN,
    EXTENSION_FORM_UNSUPPORTED,
    PACKAGE_WITHOUT_EXTENSION,
    EXTENSION_DEPENDENCY_MISSING,
    EXTENSION_DEPENDENCY_OUTSIDE,
)
"""The conditions of `extensions/outcomes.py`. The sentences are repeated here, since that module may be missing."""
NO_HOME: Final = "no_home"


@dataclass(frozen=True, slots=True)
class Pinned:
    """One pin of one profile.

    `status` is `OK`, the condition that was found, `NO_HOME` when there is no place to look, or `None` when nothing is
    known.
    """

    profile: str
    package: str
    status: str | None


def _look(here: Installation) -> tuple[Pinned, ...]:
    loaded, directory = here.configuration, here.agent_directory
    if loaded is None:
        return ()
    if directory is None or isinstance(directory, Unseen):
        return _without_files(loaded, NO_HOME if directory is None else None)
    return survive(partial(_resolved, loaded, directory), _without_files(loaded, None))


def _without_files(loaded: Configuration, status: str | None) -> tuple[Pinned, ...]:
    profiles = loaded.execution_profiles.items()
    return tuple(Pinned(alias, pin.name, status) for alias, profile in profiles for pin in profile.extensions)


def _resolved(loaded: Configuration, agent_directory: Path) -> tuple[Pinned, ...]:
    if not any(profile.extensions for profile in loaded.execution_profiles.values()):
        return ()
    from pi_session_mcp.extensions.check import check

    found = check(loaded, agent_directory)
    return tuple(Pinned(one.profile, one.pin.name, one.condition.value if one.condition else OK) for one in found)


def _verdict(pins: tuple[Pinned, ...]) -> Iterator[Check]:
    for pin in pins:
        yield from _judge(pin.status, f"{pin.profile}:{pin.package}")


def _judge(status: str | None, subject: str) -> Iterator[Check]:
    match status:
        case EXTENSION_BROKEN.id:  # its manifest may be broken, so nothing else is known
            yield from up_to((EXTENSION_MISSING, EXTENSION_BROKEN), status, subject=subject)
        case EXTENSION_MISSING.id:
            yield from up_to(ROWS, status, INSTALL_EXTENSION, subject)
        case str() if status == OK or status in {row.id for row in ROWS}:
            yield from up_to(ROWS, status, subject=subject)
        case _:
            remedy = AGENT_DIRECTORY if status == NO_HOME else UNCHECKED
            yield from up_to(ROWS, EXTENSION_MISSING.id, remedy, subject)


SUBJECT: Final = Subject(ROWS, _look, _verdict)
