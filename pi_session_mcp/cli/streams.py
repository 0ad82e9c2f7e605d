"""Where text goes: standard output for data, standard error for the rest.

A reader that leaves early (`| head -c1`) is no failure of the command: what is left to write goes nowhere and the
exit status stays. A stream that was closed before we started is treated the same.
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


class Form(NamedTuple):  # a dataclass would load half of the standard library for `--version`
    """How text for a person may look on one stream."""

    columns: int
    colour: bool
    unicode: bool


class OutputLostError(Exception):
    """Text could not be written, for a reason other than a reader that left (a full disk, for example)."""


def form_of(stream: TextIO | None, environ: Mapping[str, str]) -> Form:
    """The form that suits `stream`: no colour unless it is a terminal and `NO_COLOR` is not set."""
    terminal = is_terminal(stream) and environ.get("TERM", "") != "dumb"
    return Form(
        columns=columns(environ),
        colour=terminal and "NO_COLOR" not in environ,
        unicode=_speaks_unicode(stream),
    )


def columns(environ: Mapping[str, str]) -> int:
    """How wide a person's text may be: what `COLUMNS` says, else the terminal, within what reads well.

    As `shutil.get_terminal_size` does, which would load every archive format.
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

    Raises `OutputLostError` when it could not be written although somebody may still be reading.
    """
    _write(sys.stdout, text)


def write_err(text: str) -> None:
    """Write `text` on standard error, at once; when that fails there is nobody left to tell."""
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
    """Lead the stream's descriptor to nowhere, so that the flush at exit finds a writable end and says nothing."""
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
