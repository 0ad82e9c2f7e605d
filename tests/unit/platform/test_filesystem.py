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


@pytest.mark.parametrize(("here", "trusted"), [(26, True), (27, False), (0, False)])
def test_on_macos_the_type_of_the_root_decides_whatever_its_number_is(here: int, trusted: bool) -> None:  # noqa: FBT001
    types = {"/": 26, "/Users/me": here}
    assert has_trusted_locks(Path("/Users/me"), platform="darwin", type_of=lambda path: types[str(path)]) == trusted


@pytest.mark.parametrize(
    ("kind", "trusted"), [(0xEF53, True), (0x9123683E, True), (0x65735546, False), (0x6969, False), (0x517B, False)]
)
def test_on_linux_network_and_fuse_file_systems_are_not_trusted(kind: int, trusted: bool) -> None:  # noqa: FBT001
    assert has_trusted_locks(Path("/home/me"), platform="linux", type_of=lambda _path: kind) == trusted
