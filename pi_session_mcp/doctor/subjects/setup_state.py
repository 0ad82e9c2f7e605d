"""Setup's records of registrations: whether they can be kept, and what in them is unfinished."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.subject import OK, TARGET, UNCHECKED, Check, Subject, Unseen, fine, found, survive, warning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.doctor.installation import Installation

REMEDIES: Final = {
    "no_home": "Set HOME to your home directory, as an absolute path.",
    "file_system": "Keep the state directory on a local file system (XDG_STATE_HOME).",
    "permissions": (
        "Make the state directory (pi-session-mcp and setup in it), or the one that it would be made in, plain "
        "directories of your own in which no other user can write; setup itself has mode 0700."
    ),
    "not_writable": (
        "Give yourself permission to write in the state directory, or name another directory of yours with "
        "XDG_STATE_HOME."
    ),
    "inspect": "Remove everything from the directory inspect, which setup keeps in the state directory.",
    ".mcp.json": "Move .mcp.json out of the root directory of this machine.",
    ".git": "Move .git out of the root directory of this machine.",
    ".codex": "Move .codex out of the root directory of this machine.",
    "records": (
        "Remove the registrations that you made with each client's own command, "
        "then setup's file ownership.json in the state directory."
    ),
}
"""For each reason why records cannot be kept."""
STATE_DIRECTORY_UNSUPPORTED: Final = warning(
    "state_directory_unsupported",
    "setup state",
    "can be kept",
    "cannot be kept",
    "The directory for the records of registrations would be on a file system without reliable locks, is not "
    "yours, cannot be created, or can be read or written by others; or the records in it are damaged; or setup "
    "could not tell a client's user scope from that of a project. Sessions are not affected.",
    *REMEDIES.values(),
)
SETUP_PENDING: Final = warning(
    "setup_pending",
    TARGET,
    "complete",
    "unfinished registration",
    "A registration was begun, and its end was not recorded. The subject is the target (`client:scope`), or "
    "`setup state` when nothing is unfinished.",
    "Run `pi-session-mcp setup --apply` with this target to finish the registration, or `pi-session-mcp setup "
    "--remove` with it to undo it.",
)


@dataclass(frozen=True, slots=True)
class SetupState:
    """`status` is `OK` or a key of `REMEDIES`.

    `pending` are the targets whose transaction has not been seen to end; `None` when the records cannot be kept.
    """

    status: str
    pending: tuple[str, ...] | Unseen | None = None


def _look(here: Installation) -> SetupState | Unseen:
    directory = here.state_directory
    if isinstance(directory, Unseen):
        return directory
    if directory is None:
        return SetupState("no_home")
    status = _judge(directory, here)
    if status != OK:
        return SetupState(status)
    if not directory.exists():
        return SetupState(OK, ())
    return survive(partial(_read_records, directory), SetupState(OK, Unseen()))


def _judge(directory: Path, here: Installation) -> str:
    """As setup judges it before it makes anything."""
    from pi_session_mcp.platform.files import can_make
    from pi_session_mcp.platform.filesystem import has_trusted_locks
    from pi_session_mcp.platform.supported import SUPPORTED
    from pi_session_mcp.setup.state_directory import is_safe, nearest_directory

    known = here.platform in SUPPORTED  # elsewhere the platform itself is refused
    if known and not has_trusted_locks(nearest_directory(directory), platform=here.platform):
        return "file_system"
    if not is_safe(directory):
        return "permissions"
    return _judge_view(directory, here) if can_make(directory) else "not_writable"


def _judge_view(directory: Path, here: Installation) -> str:
    """Whether user scopes can be told from projects', as setup judges it when it has made its directory."""
    from pi_session_mcp.setup.clients.base import CommandFailed
    from pi_session_mcp.setup.clients.neutral import neutral_directory
    from pi_session_mcp.setup.state_directory import NEUTRAL

    try:
        neutral_directory(directory / NEUTRAL, here.environ, here.root, once_made=True)
    except CommandFailed as failed:
        return failed.mark or "inspect"
    return OK


def _read_records(directory: Path) -> SetupState:
    from pi_session_mcp.setup.ownership import Ownership, OwnershipUnavailable

    try:
        book = Ownership(directory).read()
    except OwnershipUnavailable:
        return SetupState("records")
    return SetupState(OK, tuple(target.short for target in book.pending_targets()))


def registered_clients(state_directory: Path) -> frozenset[str]:
    """The names of the clients in which setup has registered this server. Raises what reading the records raises."""
    from pi_session_mcp.setup.ownership import Ownership

    if not state_directory.exists():
        return frozenset()
    records = Ownership(state_directory).read().records
    return frozenset(record.target.partition(":")[0] for record in records if not record.is_pending)


def _verdict(seen: SetupState) -> Iterator[Check]:
    what = STATE_DIRECTORY_UNSUPPORTED
    yield fine(what) if seen.status == OK else found(what, REMEDIES.get(seen.status, UNCHECKED))
    match seen.pending:
        case None:
            return
        case Unseen():
            yield found(SETUP_PENDING, UNCHECKED, what.subject)
        case ():
            yield fine(SETUP_PENDING, what.subject)
        case targets:
            yield from (found(SETUP_PENDING, subject=target) for target in targets)


SUBJECT: Final = Subject((STATE_DIRECTORY_UNSUPPORTED, SETUP_PENDING), _look, _verdict)
