"""A bench for each test; whatever the test leaves of its servers is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.trees import kill_all
from tests.unit.bridge.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    kill_all([process for fixture in bench.fixtures for process in fixture.alive()])
