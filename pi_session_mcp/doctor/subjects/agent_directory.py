"""Pi's agent directory: the variable that names it, Pi's files in it, and the lock that Pi takes there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.subject import OK, Check, Subject, Unseen, error, fine, found, up_to, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.doctor.installation import Installation
    from pi_session_mcp.host.protocol import PiFault

VARIABLE_REMEDIES: Final = {
    "not_absolute": (
        "Set PI_CODING_AGENT_DIR to an absolute path, or unset it and name the directory as piAgentDirectory in the "
        "configuration."
    ),
    "in_project": "Unset PI_CODING_AGENT_DIR, and name the directory as piAgentDirectory in the configuration.",
}
"""For each reason to ignore the variable (`runtime/overrides.py`)."""
PI_AGENT_DIRECTORY_IGNORED: Final = warning(
    "pi_agent_directory_ignored",
    "PI_CODING_AGENT_DIR",
    "not ignored",
    "ignored",
    "The variable is not an absolute path, or names a directory in the working directory or in a workspace. A "
    "project could have set it, so the usual `~/.pi/agent` is used instead, and the other checks of Pi's files "
    "are about that directory. A client starts the server in a working directory of its own choice, which may not "
    "be this one.",
    *VARIABLE_REMEDIES.values(),
)
FILE_REMEDIES: Final = {
    "unreadable": "Make this file in Pi's agent directory a plain file that you can read, or remove it.",
    "not_json": (
        "Make this file in Pi's agent directory one JSON object, without comments and trailing commas, or remove it."
    ),
    "refused": (
        "Correct the entry that Pi refuses in this file of Pi's agent directory, or remove the file. For "
        "models.json, `pi --list-models` names the entry; the settings that count are in the documentation."
    ),
}
"""For each kind of fault: the second part of its name in the host protocol."""
AGENT_DIRECTORY: Final = (
    "Set HOME, or piAgentDirectory in the configuration, to an absolute path whose names are valid UTF-8."
)
PI_CONFIGURATION_INVALID: Final = error(
    "pi_configuration_invalid",
    "Pi configuration",
    "usable",
    "cannot be used as it is",
    "The subject is the file: `models.json`, `auth.json` or `settings.json` in Pi's agent directory. It exists "
    "and cannot be read; or it is not one JSON object; or Pi refuses an entry in it, even if it is only one of "
    "many; or one of the [settings that count](runtime.md#settings-of-pi) has a value that is not allowed. Pi "
    "would go on without the file, perhaps with another endpoint than the one you meant. Comments and trailing "
    "commas are refused too, although Pi accepts them in `models.json`. What is in the files is never shown.",
    *FILE_REMEDIES.values(),
    AGENT_DIRECTORY,
)
PI_AGENT_DIRECTORY_NOT_WRITABLE: Final = warning(
    "pi_agent_directory_not_writable",
    "agent directory",
    "can be locked",
    "not writable",
    "Pi reads no credential without a lock beside `auth.json`, and makes that file if it is missing. If it cannot "
    "do so, starts are refused as `local_authentication_unavailable`.",
    "Give yourself write permission for the directory that Pi's auth.json is in, since Pi makes a lock there "
    "before it reads a credential; or name another agent directory as piAgentDirectory in the configuration.",
)
PI_LOCK_PRESENT: Final = warning(
    "pi_lock_present",
    "agent directory",
    "not locked",
    "locked",
    "`auth.json.lock` is there. A Pi is at work right now, or one was killed and left it behind. Starts are refused as "
    "`local_authentication_unavailable` until Pi takes it over, which Pi does after ten seconds if it is an empty "
    "directory, and never if it is anything else.",
    "When no Pi is at work, remove auth.json.lock, which is beside Pi's auth.json.",
)
_LOCK_ROWS: Final = (PI_AGENT_DIRECTORY_NOT_WRITABLE, PI_LOCK_PRESENT)


def _look_at_variable(here: Installation) -> str:
    from pi_session_mcp.runtime.agent_directory import ignored_variable

    ignored = ignored_variable(here.asked, here.environ, here.cwd)
    return OK if ignored is None else ignored.value


def _verdict_on_variable(status: str) -> Iterator[Check]:
    what = PI_AGENT_DIRECTORY_IGNORED
    yield fine(what) if status == OK else found(what, VARIABLE_REMEDIES[status])


@dataclass(frozen=True, slots=True)
class Files:
    """The faults in Pi's files. Without a home directory that Pi can be told of, there is no place for them."""

    faults: tuple[PiFault, ...] = ()
    has_place: bool = True


def _look_at_files(here: Installation) -> Files | Unseen | None:
    if here.agent_directory is None:
        return Files(has_place=False)
    if here.pi is None or isinstance(here.pi, Unseen):
        return here.pi
    return None if here.pi.files is None else Files(here.pi.files)


def _verdict_on_files(files: Files) -> Iterator[Check]:
    what = PI_CONFIGURATION_INVALID
    if not files.has_place:
        yield found(what, AGENT_DIRECTORY)
    elif not files.faults:
        yield fine(what)
    for fault in files.faults:
        yield found(what, FILE_REMEDIES[fault.value.partition("_")[2]], fault.file)


def _look_for_lock(here: Installation) -> str | None:
    """Whether Pi could take its lock, beside the file that a link leads to (SDK 1.6.0: `dist/core/auth-storage.js`).

    An existing lock was left behind, or belongs to a Pi that is at work now. Pi takes over an empty directory after ten
    seconds. Anything else of that name blocks it for ever.
    """
    from pi_session_mcp.platform.files import can_make

    if not isinstance(here.agent_directory, Path):
        return None
    file = Path(os.path.realpath(here.agent_directory / "auth.json"))
    if not can_make(file.parent):
        return PI_AGENT_DIRECTORY_NOT_WRITABLE.id
    return PI_LOCK_PRESENT.id if os.path.lexists(f"{file}.lock") else OK


def _verdict_on_lock(status: str) -> Iterator[Check]:
    yield from up_to(_LOCK_ROWS, status)


VARIABLE: Final = Subject((PI_AGENT_DIRECTORY_IGNORED,), _look_at_variable, _verdict_on_variable)
FILES: Final = Subject((PI_CONFIGURATION_INVALID,), _look_at_files, _verdict_on_files)
LOCK: Final = Subject(_LOCK_ROWS, _look_for_lock, _verdict_on_lock)
