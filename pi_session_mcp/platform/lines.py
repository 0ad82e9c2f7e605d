"""Cuts a stream of bytes into lines. Pure."""

from __future__ import annotations


class LineSplitter:
    """Cuts chunks into lines. A line of more than `max_bytes` is dropped as it arrives, and counted.

    The time is linear in what arrives, in whatever chunks.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.too_long = 0
        """How many lines were too long so far, with the one that is still arriving."""
        self.dropped = 0
        """How many bytes of such lines were dropped so far."""
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that the chunk completes, without their ends. Only `\\n` ends a line."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._keep(end)
            if self._size <= self._max_bytes:
                lines.append(b"".join(self._pieces))
            self._pieces, self._size = [], 0
        self._keep(rest)
        return lines

    def _keep(self, piece: bytes) -> None:
        before, self._size = self._size, self._size + len(piece)
        if self._size <= self._max_bytes:
            self._pieces.append(piece)
            return
        self.dropped += len(piece)
        if before <= self._max_bytes:
            self.dropped += before
            self._pieces = []
            self.too_long += 1
