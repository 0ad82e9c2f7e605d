"""Where the operator's configuration is: the file that the variable names, else the one default place.

For the operator's commands only. `serve` takes the variable alone: a client's project must not choose by what it puts
into somebody's home, and what was registered says the whole path.
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
    """What says where the file is; the value is the word of the JSON reports."""

    VARIABLE = "variable"
    DEFAULT_PLACE = "default_place"

    @property
    def words(self) -> str:
        """For people."""
        return VARIABLE if self is Source.VARIABLE else "the default place"

    def members(self, name: str) -> dict[str, str]:
        """For a report, under `name`: that the variable named the file goes without saying."""
        return {} if self is Source.VARIABLE else {name: self.value}


@dataclass(frozen=True, slots=True)
class Place:
    """An absolute path, and what says that it is the one."""

    path: Path
    source: Source


def default_place(environ: Mapping[str, str]) -> Path | None:
    """The file that is read when no variable names one; `None` when there is no home directory.

    The same on Linux and macOS: `pi-session-mcp/config.json` in `XDG_CONFIG_HOME`, else in `~/.config`. A relative
    `XDG_CONFIG_HOME` counts for nothing, as its specification says.
    """
    named = environ.get(_BASE, "")
    home = home_directory(environ)
    base = Path(named) if os.path.isabs(named) and "\0" not in named else home and home / ".config"
    return base and base / "pi-session-mcp" / "config.json"


def place_to_read(named: str, environ: Mapping[str, str], cwd: Path) -> Place | None:
    """Where the configuration is to be read from; `None` when nothing names one and nothing is at the default place.

    `named` is what the variable says: empty is as good as unset, and a relative path counts from `cwd`. A named file
    is the one that is meant, whether it is there or not.
    """
    if named:
        return Place(cwd / named, Source.VARIABLE)
    usual = default_place(environ)
    return Place(usual, Source.DEFAULT_PLACE) if usual is not None and _is_there(usual) else None


def _is_there(path: Path) -> bool:
    """Whether something is at `path`; what cannot be looked at is there, so that reading it says what is wrong."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
