"""Files that are written whole, and files that only we could have written."""

from __future__ import annotations

import fcntl
import os
import stat
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.platform.files import can_make, is_program, others_can_write, private_directory, write_durably

if TYPE_CHECKING:
    from pathlib import Path

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_a_durable_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    path.write_text("old")

    write_durably(path, b"new", mode=0o640)

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_durable_write_replaces_a_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    theirs, path = tmp_path / "theirs", tmp_path / "note"
    theirs.write_text("theirs")
    path.symlink_to(theirs)

    write_durably(path, b"ours")

    assert not path.is_symlink()
    assert theirs.read_text() == "theirs"


def test_a_write_that_fails_leaves_the_old_state_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "in-the-way"
    path.mkdir()

    with pytest.raises(OSError, match="directory"):
        write_durably(path, b"new")

    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_full_sync_is_synced_as_far_as_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The number means nothing to the kernel here, as it means nothing to a network mount on macOS.
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 1_000_051, raising=False)

    write_durably(tmp_path / "note", b"new")

    assert (tmp_path / "note").read_bytes() == b"new"


def test_a_full_sync_is_enough_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", fcntl.F_GETFD, raising=False)

    write_durably(tmp_path / "note", b"new")

    assert (tmp_path / "note").read_bytes() == b"new"


def test_only_a_regular_file_that_may_be_executed_is_a_program(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    assert not is_program(program)
    program.chmod(0o755)
    assert is_program(program)

    os.mkfifo(tmp_path / "fifo", 0o755)
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    assert not is_program(tmp_path / "fifo")
    assert not is_program(tmp_path / "dangling")
    assert not is_program(tmp_path)
    assert not is_program(tmp_path / "nul\0")


def test_a_directory_can_be_made_below_a_writable_one_and_not_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert can_make(tmp_path)
    assert can_make(tmp_path / "not" / "yet" / "there")
    assert not can_make(tmp_path / "file" / "below")
    assert not can_make(tmp_path / "file")
    assert not (tmp_path / "not").exists()


def test_what_only_we_can_write_is_ours(tmp_path: Path) -> None:
    path = tmp_path / "ours"
    path.write_text("")

    assert not others_can_write(path)


def test_a_file_that_everybody_may_write_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.write_text("")
    path.chmod(0o666)

    assert others_can_write(path)


def test_a_directory_that_everybody_may_write_gives_away_what_is_in_it_unless_it_is_sticky(tmp_path: Path) -> None:
    directory = tmp_path / "open"
    (directory / "inner").mkdir(parents=True)
    path = directory / "inner" / "file"
    path.write_text("")
    directory.chmod(0o777)
    assert others_can_write(path)

    directory.chmod(0o1777)
    assert not others_can_write(path)


def test_a_link_is_only_as_safe_as_the_directory_it_stands_in_and_the_one_it_leads_to(tmp_path: Path) -> None:
    safe, unsafe = tmp_path / "safe", tmp_path / "unsafe"
    safe.mkdir()
    unsafe.mkdir()
    (safe / "file").write_text("")
    (unsafe / "file").write_text("")
    (unsafe / "to-safe").symlink_to(safe / "file")
    (safe / "to-unsafe").symlink_to(unsafe / "file")
    unsafe.chmod(0o777)

    assert others_can_write(unsafe / "to-safe")
    assert others_can_write(safe / "to-unsafe")
    assert not others_can_write(safe / "file")


def test_what_is_not_there_could_be_put_there_by_anyone(tmp_path: Path) -> None:
    assert others_can_write(tmp_path / "absent")
    assert others_can_write(tmp_path / "nul\0")


def test_directories_above_the_anchor_are_not_looked_at(tmp_path: Path) -> None:
    anchor = tmp_path / "open" / "environment"
    (anchor / "share").mkdir(parents=True)
    path = anchor / "share" / "file"
    path.write_text("")
    (tmp_path / "open").chmod(0o777)
    assert others_can_write(path)
    assert not others_can_write(path, anchor=anchor)

    (anchor / "share").chmod(0o777)
    assert others_can_write(path, anchor=anchor)


@needs_root
def test_another_owner_can_write_unless_trusted(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_text("")
    os.chown(path, 65_534, 0)

    assert others_can_write(path)
    assert not others_can_write(path, trusted_owners=frozenset({65_534}))


@needs_root
def test_a_group_of_other_people_can_write_where_groups_may(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.write_text("")
    path.chmod(0o664)
    os.chown(path, 0, 65_533)
    assert others_can_write(path)

    os.chown(path, 0, 0)
    assert not others_can_write(path), "root's own group"


def test_a_private_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"

    assert private_directory(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert private_directory(path), "and found again"


@pytest.mark.parametrize("mode", [0o701, 0o750, 0o777])
def test_a_directory_that_others_may_enter_is_not_private(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "cache"
    path.mkdir()
    path.chmod(mode)

    assert not private_directory(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode, "nor made to look so"


def test_a_link_or_a_file_is_no_private_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")

    assert not private_directory(tmp_path / "link")
    assert not private_directory(tmp_path / "file")
    assert not private_directory(tmp_path / "file" / "below")


def test_a_private_directory_that_others_could_swap_is_not_private(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    assert not private_directory(tmp_path / "open" / "cache")
