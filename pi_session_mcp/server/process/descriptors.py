"""The client's two descriptors, read and written without ever blocking. Standard library only.

Neither end is put into non-blocking mode: that flag belongs to the open file description, which the client may share.
A descriptor that is ready does not block; a ready pipe or socket takes `PIPE_BUF` bytes at once.
"""

from __future__ import annotations

import os
import select
from collections import deque

READ_SIZE = 64 * 1024

_WRITABLE = select.POLLOUT


class Inlet:
    """What the client sends. Owns its descriptor; `None` is an input that has ended before it began."""

    def __init__(self, fd: int | None) -> None:
        self.fd = fd
        self.ended = fd is None

    def read(self) -> bytes:
        """Some bytes, or none: because the input has `ended`, or because there are none now.

        Call it when the descriptor is ready.
        """
        if self.fd is None or self.ended:
            return b""
        try:
            chunk = os.read(self.fd, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError:
            chunk = b""  # a reset socket or a lost terminal is an end of input like any other
        self.ended = not chunk
        return chunk


class Outlet:
    """What goes to the client, in order and whole. Owns its descriptor; `None` is an output without a reader.

    Frames that the descriptor does not take yet wait here: `pending` says how many bytes. After `broken` (the reader is
    gone) everything is dropped.
    """

    def __init__(self, fd: int | None) -> None:
        self.fd = fd
        self.broken = fd is None
        self.pending = 0
        self._frames: deque[bytes] = deque()
        self._written = 0  # of the first frame
        self._poller = select.poll()
        if fd is not None:
            self._poller.register(fd, _WRITABLE)

    def put(self, frame: bytes) -> None:
        """Take a frame, and write what can be written now."""
        if self.broken:
            return
        self._frames.append(frame)
        self.pending += len(frame)
        self.pump()

    def pump(self) -> bool:
        """Write what can be written now; whether nothing is left."""
        while self._frames and self._ready():
            self._write_some()
        return not self._frames

    def _ready(self) -> bool:
        return bool(self._poller.poll(0))

    def _write_some(self) -> None:
        assert self.fd is not None
        frame = self._frames[0]
        end = self._written + select.PIPE_BUF
        try:
            count = os.write(self.fd, frame[self._written : end])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._break()
            return
        self.pending -= count
        self._written += count
        if self._written == len(frame):
            self._frames.popleft()
            self._written = 0

    def _break(self) -> None:
        self.broken = True
        self._frames.clear()
        self.pending = 0
