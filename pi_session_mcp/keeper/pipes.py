"""The pipes between this process and a child: made together, and closed together when one of them cannot be made."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Collection

INPUT: Final = 0
OUTPUT: Final = 1
ERRORS: Final = 2


class Pipes:
    """One pipe for each of some streams; the child reads from those of `to_child` and writes to the others.

    `ours` and `theirs` have the two ends by the stream's number. Our end of a stream to the child does not block.
    Raises `OSError` when a pipe cannot be made; nothing is left open then.
    """

    def __init__(self, streams: Collection[int], to_child: Collection[int] = (INPUT,)) -> None:
        self.ours: dict[int, int] = {}
        self.theirs: dict[int, int] = {}
        try:
            for stream in streams:
                reading, writing = os.pipe()
                self.ours[stream], self.theirs[stream] = (
                    (writing, reading) if stream in to_child else (reading, writing)
                )
                if stream in to_child:
                    os.set_blocking(writing, False)
        except OSError:
            self.close()
            raise

    def close_theirs(self) -> None:
        """Close our copies of the child's ends. Until then we would not see the end of what it writes."""
        while self.theirs:
            os.close(self.theirs.popitem()[1])

    def close_ours(self, *streams: int) -> None:
        """Close our ends of some streams, or of all when none is named. Who waits for one of them is woken."""
        for stream in streams or tuple(self.ours):
            if (descriptor := self.ours.pop(stream, None)) is not None:
                with suppress(RuntimeError):  # outside of an event loop nothing can wait for it
                    anyio.notify_closing(descriptor)
                os.close(descriptor)

    def close(self) -> None:
        """Close every end that is open."""
        self.close_theirs()
        self.close_ours()
