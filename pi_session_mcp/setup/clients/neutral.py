"""The place from which a client sees its user scope and nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MARKS: Final = (".mcp.json", ".git", ".codex")
"""What makes a directory, and all that is below it, a project in the eyes of some client."""


def is_neutral(directory: Path, environ: Mapping[str, str]) -> bool:
    """Whether `directory` is ours alone, empty, and below no project.

    Codex's own home lies in the home directory under the name of a project's `.codex`; Codex takes it for a project
    only from the directory that holds it, or inside a git repository.
    """
    try:
        return _is_ours_and_empty(directory) and not any(_marks_above(directory.resolve(), environ))
    except OSError:
        return False


def _is_ours_and_empty(directory: Path) -> bool:
    seen = directory.lstat()
    ours = stat.S_ISDIR(seen.st_mode) and stat.S_IMODE(seen.st_mode) == 0o700 and seen.st_uid == os.geteuid()
    return ours and not os.listdir(directory)


def _marks_above(directory: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    codex_homes = _codex_homes(environ)
    for parent in directory.parents:
        for mark in MARKS:
            found = parent / mark
            if os.path.lexists(found) and not (mark == ".codex" and found in codex_homes):
                yield found


def _codex_homes(environ: Mapping[str, str]) -> set[Path]:
    named = [environ.get("CODEX_HOME", "")]
    if os.path.isabs(environ.get("HOME", "")):
        named.append(os.path.join(environ["HOME"], ".codex"))
    # The parent is resolved, the last name is not: what is compared with it is a name in a resolved directory.
    return {Path(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in named if path}
