"""Read the configuration's bytes, once, bounded, without ever waiting for them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from pi_session_mcp.config.errors import ConfigError
from pi_session_mcp.config.rules import MAX_FILE_BYTES, Rule
from pi_session_mcp.errors import ConfigCode

if TYPE_CHECKING:
    from pathlib import Path

# Without O_NONBLOCK, opening a FIFO would wait for a writer; the descriptor's kind is only known once it is open.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def read_once(path: Path) -> bytes:
    """All bytes of the regular file at `path`.

    Raises `ConfigError`: `config_missing`, `config_unreadable`, or `config_invalid` when it is larger than 1 MiB, of
    which at most one byte more is read.
    """
    text = _read_or_refuse(path)
    if isinstance(text, ConfigError):
        raise text
    return text


def _read_or_refuse(path: Path) -> bytes | ConfigError:
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return ConfigError(ConfigCode.MISSING, Rule.FILE_ABSENT)
    except (OSError, ValueError):  # ValueError: a path that no file can have
        return ConfigError(ConfigCode.UNREADABLE, Rule.FILE_UNREADABLE)
    try:
        return _read_regular(descriptor)
    except OSError:
        return ConfigError(ConfigCode.UNREADABLE, Rule.FILE_UNREADABLE)
    finally:
        os.close(descriptor)


def _read_regular(descriptor: int) -> bytes | ConfigError:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return ConfigError(ConfigCode.UNREADABLE, Rule.FILE_UNREADABLE)
    text = bytearray()
    while len(text) <= MAX_FILE_BYTES:
        part = os.read(descriptor, MAX_FILE_BYTES + 1 - len(text))
        if not part:
            return bytes(text)
        text += part
    return ConfigError(ConfigCode.INVALID, Rule.FILE_TOO_LARGE)
