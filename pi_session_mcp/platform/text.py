"""Paths as text, whatever the locale.

Python decodes paths by the locale's encoding, which is ASCII under `LC_ALL=C`. The configuration, JSON and Node use
UTF-8 in every locale. `path_text` turns their text into a path, and `utf8_text` turns a path into their text. In a
UTF-8 locale neither changes anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def path_text(text: str) -> str:
    """`text` as a path for the functions of `os`: they pass its UTF-8 bytes to the system."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def shown_text(path: Path | str) -> str:
    """`path` as UTF-8 text for a person, or unchanged if its bytes are not UTF-8."""
    text = utf8_text(path)
    return str(path) if text is None else text


def utf8_text(path: Path | str) -> str | None:
    """`path` as UTF-8 text for another program, or `None` if its bytes are not UTF-8."""
    try:
        return os.fsencode(path).decode("utf-8")
    except UnicodeError:
        return None
