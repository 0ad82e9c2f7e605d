"""A program at a terminal of its own: a pseudo-terminal, with somebody who reads and types."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LIMIT_S: Final = 60


class Terminal:
    """Runs `argv` with all three streams on a terminal of `columns`; `split` keeps standard output off it."""

    def __init__(
        self, argv: Sequence[str], environ: Mapping[str, str], cwd: Path, *, columns: int = 80, split: bool = False
    ) -> None:
        self._terminal, its_end = os.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(environ),
            stdin=its_end,
            stdout=subprocess.PIPE if split else its_end,
            stderr=its_end,
            start_new_session=True,
        )
        os.close(its_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ended: object) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._terminal)

    def type(self, text: str) -> None:
        """Press the keys."""
        os.write(self._terminal, text.encode())

    def read_until(self, wanted: str) -> str:
        """What the terminal showed until `wanted` was on it."""
        said, end = "", time.monotonic() + LIMIT_S
        while wanted not in said:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"only this was shown: {said!r}"
            said += os.read(self._terminal, 4096).decode(errors="replace")
        return said

    def ended(self) -> tuple[int, bytes]:
        """The exit status, and what went to a split standard output. The terminal must have little left to say."""
        out, _ = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out or b""
