"""Time passes virtually in the tests of sessions: deadlines are the real ones and cost nothing."""

from __future__ import annotations

import pytest

from tests.support.virtual_time import VirtualTimeLoop


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """asyncio on a loop that jumps to the next timer when nothing else is left to do."""
    return "asyncio", {"loop_factory": VirtualTimeLoop}
