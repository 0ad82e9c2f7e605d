"""Which file systems are trusted to lock."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pi_session_mcp.platform.filesystem import has_trusted_locks


@pytest.mark.skipif(sys.platform != "linux", reason="a file system of Linux")
def test_a_file_system_that_is_not_known_to_lock_is_not_trusted() -> None:
    assert not has_trusted_locks(Path("/proc"))


@pytest.mark.skipif(sys.platform != "darwin", reason="only there the root's file system is the measure")
def test_the_file_system_of_the_root_is_trusted_on_macos() -> None:
    assert has_trusted_locks(Path("/"))


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a file system in memory")
def test_a_file_system_in_memory_is_trusted() -> None:
    assert has_trusted_locks(Path("/dev/shm"))


def test_what_cannot_be_asked_is_not_trusted(tmp_path: Path) -> None:
    assert not has_trusted_locks(tmp_path / "nowhere")
    assert not has_trusted_locks(Path("a\0b"))
    assert not has_trusted_locks(tmp_path, platform="sunos5")
