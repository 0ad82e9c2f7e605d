"""A kernel lock on one plain file, by both ways of taking it."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.platform.lock import (
    LockUnsafe,
    attempt_exlock,
    attempt_flock,
    attempt_here,
    make_lock_file,
    require_same,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.platform.lock import Attempt

EXLOCK = 0x20000000


def open_locked(path: Path, flags: int) -> int:
    """What open(2) with O_EXLOCK does elsewhere."""
    descriptor = os.open(path, flags & ~EXLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


WAYS: dict[str, Attempt] = {
    "flock": attempt_flock,
    "exlock": partial(attempt_exlock, open_locked=open_locked, flag=EXLOCK),
    "here": attempt_here,
}


@pytest.fixture(params=WAYS)
def attempt(request: pytest.FixtureRequest) -> Attempt:
    return WAYS[request.param]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_lock_file(tmp_path / "lock")
    return tmp_path / "lock"


def test_one_holds_it_and_the_next_gets_it_when_the_last_descriptor_is_closed(attempt: Attempt, path: Path) -> None:
    held = attempt(path)
    assert held is not None
    assert attempt(path) is None
    inherited = os.dup(held)
    os.close(held)
    assert attempt(path) is None
    os.close(inherited)
    again = attempt(path)
    assert again is not None
    os.close(again)


def test_a_child_that_inherits_it_holds_it_and_the_kernel_frees_it_when_that_is_killed(path: Path) -> None:
    held = attempt_flock(path)
    assert held is not None
    sleeper = [sys.executable, "-c", "import time; time.sleep(1000)"]
    with subprocess.Popen(sleeper, pass_fds=(held,)) as child:
        os.close(held)
        assert attempt_flock(path) is None
        child.kill()
    again = attempt_flock(path)
    assert again is not None
    os.close(again)


def test_the_descriptor_is_not_for_every_child(attempt: Attempt, path: Path) -> None:
    held = attempt(path)
    assert held is not None
    assert not os.get_inheritable(held)
    os.close(held)


def test_a_lock_file_is_made_once_with_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        make_lock_file(tmp_path / "lock")
        seen = (tmp_path / "lock").stat()
        make_lock_file(tmp_path / "lock")
    finally:
        os.umask(before)
    assert seen.st_mode & 0o777 == 0o600
    assert (tmp_path / "lock").stat().st_ino == seen.st_ino


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o700, 0o000])
def test_a_file_with_another_mode_is_not_locked(attempt: Attempt, path: Path, mode: int) -> None:
    path.chmod(mode)
    with pytest.raises((LockUnsafe, PermissionError)):
        attempt(path)


def test_a_link_a_second_name_a_fifo_and_a_directory_are_not_locked(attempt: Attempt, tmp_path: Path) -> None:
    real = tmp_path / "real"
    make_lock_file(real)
    (tmp_path / "link").symlink_to(real)
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "directory").mkdir()
    for name in ("link", "fifo", "directory", "missing"):
        with pytest.raises((LockUnsafe, OSError)):
            attempt(tmp_path / name)
    os.link(real, tmp_path / "second")
    with pytest.raises(LockUnsafe):
        attempt(real)


def test_a_file_that_was_put_in_its_place_is_noticed(attempt: Attempt, path: Path) -> None:
    held = attempt(path)
    assert held is not None
    require_same(held, path)
    path.rename(path.with_name("moved"))
    with pytest.raises(LockUnsafe):
        require_same(held, path)
    make_lock_file(path)
    with pytest.raises(LockUnsafe):
        require_same(held, path)
    os.close(held)


def test_a_file_replaced_while_it_was_opened_is_not_taken(path: Path) -> None:
    def replaced_meanwhile(path: Path, flags: int) -> int:
        descriptor = open_locked(path, flags)
        path.unlink()
        make_lock_file(path)
        return descriptor

    with pytest.raises(LockUnsafe):
        attempt_exlock(path, open_locked=replaced_meanwhile, flag=EXLOCK)


def test_another_error_of_the_kernel_is_an_error_and_not_busy(path: Path) -> None:
    def fails(_path: Path, _flags: int) -> int:
        raise OSError(errno.ENOLCK, "no locks")

    with pytest.raises(OSError, match="no locks"):
        attempt_exlock(path, open_locked=fails, flag=EXLOCK)


def test_without_the_flag_nothing_is_opened(path: Path) -> None:
    with pytest.raises(LockUnsafe):
        attempt_exlock(path, flag=0)
