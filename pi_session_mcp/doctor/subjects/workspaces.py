"""The workspaces of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from pi_session_mcp.doctor.subject import (
    ALIAS,
    OK,
    UNCHECKED,
    Check,
    Subject,
    error,
    fine,
    found,
    survive,
    up_to,
    warning,
)
from pi_session_mcp.platform.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.doctor.installation import Installation

WORKSPACE_MISSING: Final = error(
    "workspace_missing",
    ALIAS,
    "there",
    "does not exist",
    "There is nothing at the workspace's path, or a link there leads nowhere.",
    "Create the directory, or correct the workspace's path in the configuration.",
)
WORKSPACE_NOT_DIRECTORY: Final = error(
    "workspace_not_directory",
    ALIAS,
    "a directory",
    "not a directory",
    "At the workspace's path is a file, or something else that is not a directory.",
    "Name a directory as the workspace's path in the configuration.",
)
WORKSPACE_PATH_NOT_UTF8: Final = error(
    "workspace_path_not_utf8",
    ALIAS,
    "named in UTF-8",
    "path is not UTF-8",
    "The name of the workspace's directory, or of one above it, is not valid UTF-8, so Pi cannot be told the path.",
    "Give the workspace's directory, and those above it, names that are valid UTF-8, "
    "or name another directory in the configuration.",
)
WORKSPACE_UNREADABLE: Final = error(
    "workspace_unreadable",
    ALIAS,
    "readable",
    "not readable",
    "This user may not list or enter the workspace's directory, or one above it.",
    "Give yourself read and search permission for the workspace's directory and for those above it.",
)
WORKSPACE_NOT_WRITABLE: Final = error(
    "workspace_not_writable",
    ALIAS,
    "writable as needed",
    "not writable",
    "A coding profile is configured, and this user may not write in the workspace's directory.",
    "Give yourself write permission for the workspace's directory, or configure no coding profile.",
)
OUTSIDE: Final = {
    "configuration": "Move the configuration out of the workspace, or narrow the workspace.",
    "agent_directory": (
        "Keep Pi's agent directory outside of the workspace (piAgentDirectory in the configuration), "
        "or narrow the workspace."
    ),
    "runtime": (
        "Keep pi-session-mcp, Node.js and the Pi SDK that it uses outside of the workspace, or narrow the workspace."
    ),
    "state": "Keep the state directory (XDG_STATE_HOME) outside of the workspace, or narrow the workspace.",
}
"""For each thing that decides about sessions, what to do when it lies inside a workspace."""
WORKSPACE_CONTAINS_POLICY: Final = warning(
    "workspace_contains_policy",
    ALIAS,
    "holds no policy",
    "holds what decides about sessions",
    "A coding profile is configured, and the configuration, Pi's agent directory, the runtime or the state "
    "directory lies inside this workspace: a session could rewrite its own limits.",
    *OUTSIDE.values(),
)
WORKSPACE_INSTRUCTIONS_LEFT_OUT: Final = warning(
    "workspace_instructions_left_out",
    ALIAS,
    "has no unusable instructions",
    "has instructions that are left out",
    "A file of instructions (`AGENTS.md` and the like) of this workspace, or of a directory above it, is there and "
    "is [not given to the model](host-protocol.md#what-a-session-can-reach): it is no regular file, is larger than "
    "1 MiB, is a link that leads outside or nowhere, or cannot be read; or, above the workspace, it belongs to "
    "somebody else. Sessions start without it.",
    "Make every AGENTS.override.md, AGENTS.md and CLAUDE.md of this workspace a readable file of at most 1 MiB, "
    "or a link to such a file inside the workspace. In a directory above the workspace, make each a file of your "
    "own and not a link. Or remove the file.",
)
_LINE: Final = (
    WORKSPACE_MISSING,
    WORKSPACE_NOT_DIRECTORY,
    WORKSPACE_PATH_NOT_UTF8,
    WORKSPACE_UNREADABLE,
    WORKSPACE_NOT_WRITABLE,
    WORKSPACE_CONTAINS_POLICY,
)
_DIRECTORIES: Final = {
    Directory.UNSEEN: WORKSPACE_MISSING,
    Directory.MISSING: WORKSPACE_MISSING,
    Directory.NOT_DIRECTORY: WORKSPACE_NOT_DIRECTORY,
    Directory.UNNAMEABLE: WORKSPACE_PATH_NOT_UTF8,
    Directory.UNREADABLE: WORKSPACE_UNREADABLE,
    Directory.READ_ONLY: WORKSPACE_NOT_WRITABLE,
}
_Held: TypeAlias = tuple[tuple[str, Path], ...]
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace, by its alias.

    `holds` is a key of `OUTSIDE`, or another word when the look failed. `is_for_coding` says that a profile may
    write there. `left_out` says whether a session would go without files of instructions that are there; `None` when Pi
    was not asked.
    """

    alias: str
    directory: Directory
    holds: str | None = None
    is_for_coding: bool = True
    left_out: bool | None = None


def _look(here: Installation) -> tuple[Workspace, ...]:
    loaded = here.configuration
    if loaded is None:
        return ()
    held = tuple(_what_decides(here))
    is_for_coding = any(profile.permission_profile == "coding" for profile in loaded.execution_profiles.values())
    left_out = here.answer.left_out if here.answer else {}
    return tuple(
        Workspace(alias, *_look_at(path, held), is_for_coding, left_out.get(alias))
        for alias, path in loaded.workspaces.items()
    )


def _what_decides(here: Installation) -> Iterator[tuple[str, Path]]:
    if here.place is not None:
        yield "configuration", here.place.path
    if isinstance(here.agent_directory, Path):
        yield "agent_directory", here.agent_directory
    for path in (*here.runtime.places, Path(__file__).parents[2]):
        yield "runtime", path
    if isinstance(here.state_directory, Path):
        yield "state", here.state_directory


def _look_at(path: Path, held: _Held) -> tuple[Directory, str | None]:
    """What is at the path, and what of `held` lies below it."""
    directory = survive(partial(_directory, path), Directory.UNSEEN)
    below = survive(partial(_first_below, path, held), _UNKNOWN) if directory is Directory.WRITABLE else None
    return directory, below


def _directory(path: Path) -> Directory:
    from pi_session_mcp.platform.files import look_at_directory

    return look_at_directory(path)


def _first_below(workspace: Path, held: _Held) -> str | None:
    from pi_session_mcp.platform.paths import is_below

    return next((kind for kind, path in held if is_below(path, workspace)), None)


def _verdict(workspaces: tuple[Workspace, ...]) -> Iterator[Check]:
    for workspace in workspaces:
        yield from up_to(_LINE, *_finding(workspace), workspace.alias)
        if workspace.left_out is not None and workspace.directory.is_usable:
            what = WORKSPACE_INSTRUCTIONS_LEFT_OUT
            yield found(what, subject=workspace.alias) if workspace.left_out else fine(what, workspace.alias)


def _finding(workspace: Workspace) -> tuple[str, str | None]:
    """The status of `_LINE` and its remedy. What can be written matters only when a profile is for coding."""
    if workspace.directory.is_usable and not workspace.is_for_coding:
        return OK, None
    if workspace.directory is not Directory.WRITABLE:
        return _DIRECTORIES[workspace.directory].id, UNCHECKED if workspace.directory is Directory.UNSEEN else None
    if workspace.holds is None:
        return OK, None
    return WORKSPACE_CONTAINS_POLICY.id, OUTSIDE.get(workspace.holds, UNCHECKED)


SUBJECT: Final = Subject((*_LINE, WORKSPACE_INSTRUCTIONS_LEFT_OUT), _look, _verdict)
