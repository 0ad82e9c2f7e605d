"""The file is read once, bounded, and nothing that a path can name makes the reader wait."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.config.load import ConfigError, load
from pi_session_mcp.config.reading import read_once
from pi_session_mcp.config.rules import MAX_FILE_BYTES, Rule
from pi_session_mcp.errors import ConfigCode
from tests.unit.config.given import a_document, to_bytes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)


def refusal_of(path: Path) -> tuple[ConfigCode, str, str | None]:
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.__context__ is None
    return caught.value.code, caught.value.rule, caught.value.pointer


UNREADABLE = (ConfigCode.UNREADABLE, Rule.FILE_UNREADABLE, "")
MISSING = (ConfigCode.MISSING, Rule.FILE_ABSENT, "")


def test_an_absent_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")

    assert refusal_of(tmp_path / "absent") == MISSING
    assert refusal_of(tmp_path / "dangling") == MISSING
    assert refusal_of(tmp_path / "file" / "below") == MISSING


def test_a_directory_is_unreadable(tmp_path: Path) -> None:
    assert refusal_of(tmp_path) == UNREADABLE


def test_a_pipe_without_a_writer_is_unreadable_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert refusal_of(tmp_path / "pipe") == UNREADABLE


def test_a_pipe_with_a_writer_is_unreadable_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        os.write(writer, to_bytes(a_document()))
        assert refusal_of(tmp_path / "pipe") == UNREADABLE
    finally:
        os.close(writer)


def test_a_socket_a_device_and_a_loop_are_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path may only be short
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert refusal_of(tmp_path / "socket") == UNREADABLE
    assert refusal_of(tmp_path / "loop") == UNREADABLE
    assert refusal_of(tmp_path.__class__("/dev/zero")) == UNREADABLE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(to_bytes(a_document()))
    (tmp_path / "file").chmod(0)

    assert refusal_of(tmp_path / "file") == UNREADABLE


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000])
def test_a_path_that_no_file_can_have_is_unreadable(name: str, tmp_path: Path) -> None:
    assert refusal_of(tmp_path / name) == UNREADABLE


def test_a_file_is_refused_one_byte_past_a_mebibyte(tmp_path: Path) -> None:
    text = to_bytes(a_document())
    path = tmp_path / "file"

    path.write_bytes(text.ljust(MAX_FILE_BYTES))
    assert load(path).default_profile == "safe"

    path.write_bytes(text.ljust(MAX_FILE_BYTES + 1))
    assert refusal_of(path) == (ConfigCode.INVALID, Rule.FILE_TOO_LARGE, "")


def test_a_huge_sparse_file_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 40)

    assert refusal_of(tmp_path / "file") == (ConfigCode.INVALID, Rule.FILE_TOO_LARGE, "")


def test_a_symlink_to_a_file_is_followed_and_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"exact\r\nbytes")
    (tmp_path / "link").symlink_to("file")
    before = os.dup(0)
    os.close(before)

    assert read_once(tmp_path / "link") == b"exact\r\nbytes"
    after = os.dup(0)
    os.close(after)
    assert after == before
