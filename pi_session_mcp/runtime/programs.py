"""Finds the programs on `PATH` that may be run, which are fewer than a shell would take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pi_session_mcp.platform.files import is_program, others_can_write
from pi_session_mcp.platform.paths import is_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def find_program(name: str, environ: Mapping[str, str], untrusted: Iterable[Path]) -> Path | None:
    """The first `name` on `PATH` that only the operator can have put there, as written on `PATH`.

    Skips entries of `PATH` that are empty or relative, programs in or below an `untrusted` directory, and those that
    others can write (see `platform.files.others_can_write`). The path is not resolved: a package manager may keep a
    link up to date. A working directory `/` is no project, so it excludes nothing.
    """
    directories = [directory for directory in untrusted if directory != Path("/")]
    for entry in environ.get("PATH", "").split(os.pathsep):
        program = Path(entry, name)
        if os.path.isabs(entry) and is_program(program) and _is_trusted(program, directories):
            return program
    return None


def _is_trusted(program: Path, untrusted: Iterable[Path]) -> bool:
    return not any(is_below(program, directory) for directory in untrusted) and not others_can_write(program)
