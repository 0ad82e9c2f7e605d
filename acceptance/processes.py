"""Commands in sessions of their own, and whatever of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import psutil

from acceptance.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

MARK: Final = "PI_SESSION_MCP_ACCEPTANCE"
"""A variable that everything we start inherits; its value is one home's."""
_GRACE_S: Final = 15.0
_LOOK_EVERY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended and what it wrote."""

    status: int
    stdout: str
    stderr: str


class Started:
    """A command in a session of its own; leaving the block ends it.

    It writes to files, not to pipes: what it leaves behind must not keep us waiting for the end of its output.
    """

    def __init__(self, words: Sequence[str], directory: Path, environ: Mapping[str, str]) -> None:
        self._streams = (tempfile.TemporaryFile(), tempfile.TemporaryFile())  # noqa: SIM115 - closed with the block
        try:
            self._process = subprocess.Popen(
                list(words),
                cwd=directory,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=self._streams[0],
                stderr=self._streams[1],
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_over_within(0):
            self._process.terminate()
        if not self.is_over_within(_GRACE_S):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._close()

    def _close(self) -> None:
        for stream in self._streams:
            stream.close()

    def interrupt(self) -> None:
        """Send it SIGINT, as a terminal would."""
        self._process.send_signal(signal.SIGINT)

    def is_over_within(self, seconds: float) -> bool:
        """Wait up to `seconds` for its end."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    def finished(self, within_s: float) -> Finished:
        """Wait for its end. Raises `HarnessError` when it takes longer."""
        if not self.is_over_within(within_s):
            raise HarnessError(f"a command took longer than {within_s:.0f} s")
        texts = []
        for stream in self._streams:
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
        return Finished(self._process.returncode, *texts)


def run(words: Sequence[str], directory: Path, environ: Mapping[str, str], *, within_s: float) -> Finished:
    """Run a command to its end. Raises `HarnessError`."""
    try:
        with Started(words, directory, environ) as started:
            return started.finished(within_s)
    except OSError as error:
        raise HarnessError(f"a command could not be started: {error.strerror}") from None


def left_of(mark: str, *, within_s: float) -> list[psutil.Process]:
    """The processes with this mark that are still there after `within_s`."""
    deadline = time.monotonic() + within_s
    while (found := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    return found


def end_all(mark: str, grace_s: float = _GRACE_S) -> None:
    """End every process with this mark that is still there after `grace_s`. Only ours have the mark."""
    for process in left_of(mark, within_s=grace_s):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    left_of(mark, within_s=_GRACE_S)


def _marked(mark: str) -> list[psutil.Process]:
    return living(lambda environ: environ.get(MARK) == mark)


def living(is_meant: Callable[[Mapping[str, str]], bool]) -> list[psutil.Process]:
    """The living processes whose environment is meant.

    The server and its keepers show theirs to nobody but root. Of such processes, those below us are meant as well: the
    program of the harness adopts what loses its parent (Linux), and has one home at a time.
    """
    below = {process.pid for process in psutil.Process().children(recursive=True)}
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE and _is_meant(process, is_meant, below):
                found.append(process)
    return found


def _is_meant(process: psutil.Process, is_meant: Callable[[Mapping[str, str]], bool], below: set[int]) -> bool:
    try:
        return is_meant(process.environ())
    except psutil.AccessDenied:
        return process.pid in below
