"""Paths as text, whatever the locale.

Python's paths are text in the encoding of the locale, and under `LC_ALL=C` that is ASCII. The configuration, JSON and
Node are UTF-8 all the same. Text from there is a path after `path_text`, and a path is text for them after `utf8_text`;
in a UTF-8 locale both change nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def path_text(text: str) -> str:
    """`text` as the operating system's functions take it: they hand on its UTF-8 bytes."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def shown_text(path: Path | str) -> str:
    """`path` as others would show it: its UTF-8 text, or what it is here where it has none."""
    text = utf8_text(path)
    return str(path) if text is None else text


def utf8_text(path: Path | str) -> str | None:
    """`path` for a program that reads UTF-8; `None` when its bytes are none."""
    try:
        return os.fsencode(path).decode("utf-8")
    except UnicodeError:
        return None
