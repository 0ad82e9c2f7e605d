"""Reading and writing real descriptors without blocking."""

from __future__ import annotations

import os
import select
import socket
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.server.process.descriptors import Inlet, Outlet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Channel:
    """A descriptor to read and one to write."""

    def __init__(self, kind: str) -> None:
        if kind == "pipe":
            self.reader, self.writer = os.pipe()
        else:
            self.reader, self.writer = (end.detach() for end in socket.socketpair())
        self._open = {self.reader, self.writer}

    def close(self, fd: int) -> None:
        self._open.remove(fd)
        os.close(fd)

    def close_all(self) -> None:
        for fd in tuple(self._open):
            self.close(fd)


@pytest.fixture(params=["pipe", "socket"])
def channel(request: pytest.FixtureRequest) -> Iterator[Channel]:
    made = Channel(request.param)
    yield made
    made.close_all()


def drain(fd: int) -> bytes:
    found = b""
    while select.select([fd], [], [], 0)[0] and (chunk := os.read(fd, 65536)):
        found += chunk
    return found


def test_what_is_put_can_be_read(channel: Channel) -> None:
    Outlet(channel.writer).put(b"frame\n")

    assert Inlet(channel.reader).read() == b"frame\n"


def test_an_outlet_whose_reader_does_not_read_keeps_the_rest_and_sends_it_whole_later(channel: Channel) -> None:
    outlet = Outlet(channel.writer)
    frames = [bytes([number]) * 300_000 for number in range(4)]
    for frame in frames:
        outlet.put(frame)
    assert 0 < outlet.pending < 1_200_000
    assert not outlet.pump()

    received = b""
    while not outlet.pump():
        received += drain(channel.reader)
    received += drain(channel.reader)

    assert received == b"".join(frames)
    assert outlet.pending == 0


def test_an_outlet_whose_reader_is_gone_is_broken_and_keeps_nothing(channel: Channel) -> None:
    channel.close(channel.reader)
    outlet = Outlet(channel.writer)
    outlet.put(b"frame\n")

    assert outlet.broken
    assert outlet.pending == 0
    outlet.put(b"another\n")
    assert outlet.pump()


def test_an_outlet_notices_that_its_reader_went_while_it_was_blocked(channel: Channel) -> None:
    outlet = Outlet(channel.writer)
    outlet.put(b"x" * 1_000_000)
    channel.close(channel.reader)

    assert outlet.pump()
    assert outlet.broken


def test_an_inlet_ends_when_its_writer_is_gone(channel: Channel) -> None:
    os.write(channel.writer, b"last")
    channel.close(channel.writer)
    inlet = Inlet(channel.reader)

    assert (inlet.read(), inlet.ended) == (b"last", False)
    assert (inlet.read(), inlet.ended) == (b"", True)
    assert inlet.read() == b""


def test_an_inlet_in_non_blocking_mode_has_nothing_now_and_has_not_ended(channel: Channel) -> None:
    os.set_blocking(channel.reader, False)
    inlet = Inlet(channel.reader)

    assert (inlet.read(), inlet.ended) == (b"", False)


def test_no_descriptor_is_an_input_at_its_end_and_an_output_without_a_reader() -> None:
    assert Inlet(None).ended
    assert Inlet(None).read() == b""
    assert Outlet(None).broken
    Outlet(None).put(b"frame\n")


def test_a_file_and_the_null_device_are_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    target = os.open(path, os.O_CREAT | os.O_RDWR)
    null = os.open(os.devnull, os.O_RDWR)

    Outlet(target).put(b"x" * 100_000)
    Outlet(null).put(b"x" * 100_000)

    assert path.stat().st_size == 100_000
    inlet = Inlet(null)
    assert (inlet.read(), inlet.ended) == (b"", True)
    os.close(target)
    os.close(null)


def test_the_flags_of_the_shared_description_are_left_alone(channel: Channel) -> None:
    Outlet(channel.writer).put(b"x" * 1_000_000)
    Inlet(channel.reader).read()

    assert os.get_blocking(channel.reader)
    assert os.get_blocking(channel.writer)
