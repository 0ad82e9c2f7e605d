"""Where the operator's configuration is: the file that the variable names, or else the one default place.

For the operator's commands only. `serve` takes only the variable, which a registration sets to the whole path: a
client's project must not be able to choose the file by putting something into a home directory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.platform.paths import home_directory
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

_BASE: Final = "XDG_CONFIG_HOME"


class Source(StrEnum):
    """What says where the file is. The value is the word in JSON reports."""

    VARIABLE = "variable"
    DEFAULT_PLACE = "default_place"

    @property
    def words(self) -> str:
        """The source in words."""
        return VARIABLE if self is Source.VARIABLE else "the default place"

    def members(self, name: str) -> dict[str, str]:
        """The member of a report, under `name`, or nothing when the variable named the file, as it usually does."""
        return {} if self is Source.VARIABLE else {name: self.value}


@dataclass(frozen=True, slots=True)
class Place:
    """An absolute path, and what says that the file is there."""

    path: Path
    source: Source


def default_place(environ: Mapping[str, str]) -> Path | None:
    """The file that is read when the variable names none. `None` when there is no home directory.

    On Linux and macOS: `pi-session-mcp/config.json` in `XDG_CONFIG_HOME`, or else in `~/.config`. A relative
    `XDG_CONFIG_HOME` is ignored, as its specification says.
    """
    named = environ.get(_BASE, "")
    home = home_directory(environ)
    base = Path(named) if os.path.isabs(named) and "\0" not in named else home and home / ".config"
    return base and base / "pi-session-mcp" / "config.json"


def place_to_read(named: str, environ: Mapping[str, str], cwd: Path) -> Place | None:
    """Where the configuration is read. `None` when the variable names none and nothing is at the default place.

    `named` is the value of the variable. An empty value counts as unset, and a relative path begins at `cwd`. A file
    that is named is meant even if it does not exist.
    """
    if named:
        return Place(cwd / named, Source.VARIABLE)
    usual = default_place(environ)
    return Place(usual, Source.DEFAULT_PLACE) if usual is not None and _is_there(usual) else None


def _is_there(path: Path) -> bool:
    """Whether something exists at `path`. If that cannot be known, it does: reading it will say what is wrong."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
