"""Directories for whole installations."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


@contextmanager
def large_directory(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """One that goes as soon as nobody needs it: what has not reached the disk by then never has to."""
    directory = factory.mktemp(name)
    yield directory
    shutil.rmtree(directory)
