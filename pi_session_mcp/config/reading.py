"""Reads the configuration's bytes, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_session_mcp.config.errors import ConfigError
from pi_session_mcp.config.rules import MAX_FILE_BYTES, Rule
from pi_session_mcp.errors import ConfigCode
from pi_session_mcp.platform.reading import TooLarge, read_regular

if TYPE_CHECKING:
    from pathlib import Path


def read_once(path: Path) -> bytes:
    """All bytes of the regular file at `path`.

    Raises `ConfigError`: `config_missing`, `config_unreadable`, or `config_invalid` when it is larger than 1 MiB.
    """
    try:
        return read_regular(path, max_bytes=MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        refusal = ConfigError(ConfigCode.MISSING, Rule.FILE_ABSENT)
    except TooLarge:
        refusal = ConfigError(ConfigCode.INVALID, Rule.FILE_TOO_LARGE)
    except (OSError, ValueError):  # ValueError: a path that no file can have
        refusal = ConfigError(ConfigCode.UNREADABLE, Rule.FILE_UNREADABLE)
    raise refusal
