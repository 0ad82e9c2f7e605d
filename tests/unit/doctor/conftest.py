"""An installation to break."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Installation]:
    """An installation in which nothing is wrong."""
    installation = Installation(tmp_path)
    yield installation
    installation.open_everything()
