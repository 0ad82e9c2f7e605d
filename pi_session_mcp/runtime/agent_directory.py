"""Pi's agent directory: where its credentials, models and extensions are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.platform.paths import home_directory, is_below
from pi_session_mcp.platform.text import utf8_text
from pi_session_mcp.runtime.overrides import Asked, Ignored, untrusted_directories

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "PI_CODING_AGENT_DIR"


def agent_directory(asked: Asked, environ: Mapping[str, str], cwd: Path) -> Path:
    """The configured directory, or that of `PI_CODING_AGENT_DIR`, or `~/.pi/agent`, in this order.

    The variable counts unless `ignored_variable` says why not. Raises `Refusal` when nothing is configured and there is
    no home directory. Also raises it when the path is not UTF-8: Pi would be told of another directory.
    """
    directory = _named(asked, environ, cwd)
    if directory is None or utf8_text(directory) is None or utf8_text(os.path.realpath(directory)) is None:
        raise Refusal(Code.PI_CONFIGURATION_INVALID, stage=Stage.RUNTIME)
    return directory


def _named(asked: Asked, environ: Mapping[str, str], cwd: Path) -> Path | None:
    if asked.pi_agent_directory is not None:
        return asked.pi_agent_directory
    named = environ.get(VARIABLE, "")
    if named and ignored_variable(asked, environ, cwd) is None:
        return Path(named)
    home = home_directory(environ)
    return None if home is None else home / ".pi" / "agent"


def ignored_variable(asked: Asked, environ: Mapping[str, str], cwd: Path) -> Ignored | None:
    """Why `PI_CODING_AGENT_DIR` does not count. `None` when it counts, is empty, or a directory is configured.

    It counts if it is absolute and leads, as written and after links, to no place in the working directory or a
    workspace. A project can set variables for its clients, and Pi's `models.json` may run commands. Pi itself expands a
    leading `~`; such a path is not absolute, so it does not count.
    """
    named = environ.get(VARIABLE, "")
    if asked.pi_agent_directory is not None or not named:
        return None
    if not os.path.isabs(named) or "\0" in named:
        return Ignored.NOT_ABSOLUTE
    if any(is_below(Path(named), directory) for directory in untrusted_directories(asked, cwd)):
        return Ignored.IN_PROJECT
    return None
