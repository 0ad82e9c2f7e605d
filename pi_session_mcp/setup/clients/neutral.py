"""The place from which a client sees its user scope and nothing else.

A home may itself be a project: a git repository of dotfiles, or one with a `.mcp.json` or a `.codex`. So our directory
is the top of a git repository, and no client looks for a repository above it. Claude Code looks for `.mcp.json` above
it all the same. When there is one, the root directory is used, which has nothing above it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.platform.files import sync_descriptor, sync_directory
from pi_session_mcp.setup.clients.base import CommandFailed, CommandFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MARKS: Final = (".mcp.json", ".git", ".codex")
"""Names that make a directory, and all below it, a project to some client."""
ROOT: Final = Path("/")

_SEEN_THROUGH: Final = (".mcp.json",)
"""The marks that clients look for above the top of a repository, too."""
_REPOSITORY: Final = ".git"
_HEAD: Final = b"ref: refs/heads/none\n"
_BELOW_REPOSITORY: Final = ("objects", "refs")
"""With these and a HEAD, git and its imitators take a directory for a repository."""


def neutral_directory(ours: Path, environ: Mapping[str, str], root: Path = ROOT, *, once_made: bool = False) -> Path:
    """`ours`, or `root` when `ours` does not exist yet or lies in a project. Raises `CommandFailed`.

    The error has the mark that is in the way, or none when `ours` is not as we made it. With `once_made` the answer is
    that of a run that makes `ours` first.
    """
    if is_neutral(ours, environ) or (once_made and _will_be_neutral(ours, environ)):
        return ours
    if os.path.lexists(ours) and not is_as_made(ours) and not _is_unfinished(ours):
        raise CommandFailed(CommandFailure.NOT_NEUTRAL)
    if (mark := next(_marks_in((root,), MARKS, environ), None)) is not None:
        raise CommandFailed(CommandFailure.NOT_NEUTRAL, mark.name)
    return root


def is_neutral(directory: Path, environ: Mapping[str, str]) -> bool:
    """Whether `directory` is ours alone and as we made it, and no project is seen from it."""
    return is_as_made(directory) and not any(_marks_above(directory, environ))


def _will_be_neutral(directory: Path, environ: Mapping[str, str]) -> bool:
    can_be_made = not os.path.lexists(directory) or is_as_made(directory) or _is_unfinished(directory)
    return can_be_made and not any(_marks_in(directory.resolve().parents, _SEEN_THROUGH, environ))


def is_as_made(directory: Path) -> bool:
    """Whether `directory` is ours alone, and empty or the top of an empty repository."""
    try:
        names = set(os.listdir(directory)) if _is_private(directory) else {""}
        return not names or (names == {_REPOSITORY} and _is_repository(directory / _REPOSITORY))
    except OSError:
        return False


def make_top_of_repository(directory: Path) -> None:
    """Make an empty directory of ours the top of a repository, or finish what a killed run began. Raises `OSError`.

    A directory with anything else in it stays as it is.
    """
    repository = directory / _REPOSITORY
    is_empty = is_as_made(directory) and not os.path.lexists(repository)
    if not is_empty and not _is_unfinished(directory):
        return
    for made in (repository, *(repository / name for name in _BELOW_REPOSITORY)):
        with suppress(FileExistsError):
            os.mkdir(made, 0o700)
            os.chmod(made, 0o700)  # the umask may have taken some of it
    # Two runs may write this at the same time, and they write the same.
    descriptor = os.open(repository / "HEAD", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.pread(descriptor, len(_HEAD) + 1, 0) != _HEAD:
            os.fchmod(descriptor, 0o600)
            os.pwrite(descriptor, _HEAD, 0)
            sync_descriptor(descriptor)
            sync_directory(repository)
            sync_directory(directory)
    finally:
        os.close(descriptor)


def _is_unfinished(directory: Path) -> bool:
    """Whether it has nothing but parts of the repository, and not all of them."""
    repository = directory / _REPOSITORY
    try:
        is_ours = _is_private(directory) and os.listdir(directory) == [_REPOSITORY] and _is_private(repository)
        return is_ours and {"HEAD", *_BELOW_REPOSITORY}.issuperset(os.listdir(repository)) and not is_as_made(directory)
    except OSError:
        return False


def _is_private(directory: Path) -> bool:
    seen = directory.lstat()
    return stat.S_ISDIR(seen.st_mode) and stat.S_IMODE(seen.st_mode) == 0o700 and seen.st_uid == os.geteuid()


def _is_repository(repository: Path) -> bool:
    """Whether it is the repository that we make. A `commondir` would make it a part of another one."""
    head = repository / "HEAD"
    has_head = stat.S_ISREG(head.lstat().st_mode) and head.read_bytes() == _HEAD
    parts = (repository, *(repository / name for name in _BELOW_REPOSITORY))
    return has_head and all(map(_is_private, parts)) and not os.path.lexists(repository / "commondir")


def _marks_above(directory: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    marks = _SEEN_THROUGH if os.path.lexists(directory / _REPOSITORY) else MARKS
    return _marks_in(directory.resolve().parents, marks, environ)


def _marks_in(directories: Iterable[Path], marks: tuple[str, ...], environ: Mapping[str, str]) -> Iterator[Path]:
    """The marks that count.

    Codex's own home is called `.codex` like the mark of a project. Codex takes it for a mark only in the directory that
    has it, or in a git repository.
    """
    codex_homes = _codex_homes(environ)
    for directory in directories:
        for mark in marks:
            found = directory / mark
            if os.path.lexists(found) and not (mark == ".codex" and found in codex_homes):
                yield found


def _codex_homes(environ: Mapping[str, str]) -> set[Path]:
    named = [environ.get("CODEX_HOME", "")]
    if os.path.isabs(environ.get("HOME", "")):
        named.append(os.path.join(environ["HOME"], ".codex"))
    # The last name is not resolved, since it is compared with a name in a resolved directory.
    return {Path(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in named if path}
