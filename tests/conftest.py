"""What every test gets: anyio on asyncio, and a home that does not exist until the test makes one."""

from __future__ import annotations

import gc
import os
import signal
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers: Final = count()
HERE: Final = Path(__file__).parent
LONGEST: Final = (
    "process/test_setup_agreement.py",
    "process/test_doctor.py",
    "process/test_one_judgement.py",
    "process/test_setup_settings.py",
    "contract/test_bad_extensions.py",
    "process/test_demo.py",
    "process/test_remedies.py",
    "process/test_ended_by_anything.py",
    "process/test_setup_killed.py",
    "process/test_setup_bad_worlds.py",
    "contract/extended/test_endings.py",
    "process/test_acceptance.py",
    "contract/host/test_commands.py",
    "unit/doctor/test_table.py",
    "contract/test_bridge_endings.py",
    "process/test_setup_command.py",
    "contract/test_package_shapes.py",
)
"""Files that take the longest, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, then what starts processes, then the rest, so that no worker is left alone with a long file."""
    items.sort(key=lambda item: _turn_of(item.path.relative_to(HERE)))


def _turn_of(file: Path) -> int:
    if file.as_posix() in LONGEST:
        return LONGEST.index(file.as_posix())
    return len(LONGEST) + (file.parts[0] == "unit")


def pytest_collection_finish() -> None:
    """What was collected stays to the end. The collector of garbage need not look at it again and again."""
    gc.freeze()


@pytest.fixture
def anyio_backend() -> str:
    """The one backend that the program runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """A command that runs inside the test's own process leaves handlers that end it, which is not for the next test."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def no_real_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point every variable that leads to a person's own files, or proxy, at a place that does not exist, or drop it."""
    nowhere = tmp_path_factory.getbasetemp() / f"nowhere-{next(_numbers)}" / "home"
    for name in list(os.environ):
        if name.startswith(("XDG_", "PI_", "CLAUDE_", "CODEX_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name in ("HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR"):
        monkeypatch.setenv(name, str(nowhere))
    return nowhere
