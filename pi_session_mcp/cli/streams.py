"""Where text goes: standard output for data, standard error for the rest.

A reader that leaves early (`| head -c1`) is no failure of the command: the rest of the text is dropped and the exit
status stays. The same holds for a stream that was closed before the program started.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

MIN_COLUMNS: Final = 40
MAX_COLUMNS: Final = 100


class Form(NamedTuple):  # to import dataclasses would make `--version` slow
    """What text for a person may use on one stream."""

    columns: int
    colour: bool
    unicode: bool


class OutputLostError(Exception):
    """Text could not be written, and not because its reader left: a full disk, for example."""


def form_of(stream: TextIO | None, environ: Mapping[str, str]) -> Form:
    """The form that suits `stream`: no colour unless it is a terminal and `NO_COLOR` is not set."""
    terminal = is_terminal(stream) and environ.get("TERM", "") != "dumb"
    return Form(
        columns=columns(environ),
        colour=terminal and "NO_COLOR" not in environ,
        unicode=_speaks_unicode(stream),
    )


def columns(environ: Mapping[str, str]) -> int:
    """How wide text for a person may be: as `COLUMNS` says, or else the terminal, within limits that read well.

    `shutil.get_terminal_size` does the same, but importing `shutil` loads every archive format.
    """
    named = environ.get("COLUMNS", "")
    seen = int(named) if named.isascii() and named.isdecimal() and len(named) < 6 else 0
    return max(MIN_COLUMNS, min(seen or _columns_of_terminal(), MAX_COLUMNS))


def _columns_of_terminal() -> int:
    try:
        return os.get_terminal_size(1).columns or 80
    except (OSError, ValueError):
        return 80


def is_terminal(stream: TextIO | None) -> bool:
    """Whether `stream` is there and leads to a terminal."""
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):
        return False


def write_out(text: str) -> None:
    """Write `text` on standard output, at once.

    Raises `OutputLostError` when it could not be written although there may still be a reader.
    """
    _write(sys.stdout, text)


def write_err(text: str) -> None:
    """Write `text` on standard error, at once. A failure is ignored, since there is no other place to report it."""
    try:
        _write(sys.stderr, text)
    except OutputLostError:
        _discard(sys.stderr)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    encoding = stream.encoding or "ascii"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        _discard(stream)
    except (OSError, ValueError) as failed:
        _discard(stream)
        raise OutputLostError from failed


def _discard(stream: TextIO | None) -> None:
    """Point the stream's descriptor at the null device, so that the flush at exit does not fail."""
    if stream is None:
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return


def _speaks_unicode(stream: TextIO | None) -> bool:
    try:
        "✓✗·—".encode((stream and stream.encoding) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
