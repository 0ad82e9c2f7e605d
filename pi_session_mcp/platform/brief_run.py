"""Run one program briefly and hear what it says, without an event loop and without a keeper.

For the doctor, which opens no socket and starts no second program; an event loop needs the one and a keeper is the
other. The program runs in a session of its own, and what it starts in that session is ended with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

_CHUNK_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Said:
    """What a program wrote until it ended, was ended, or had said too much; and whether it ended well."""

    text: bytes
    ended_well: bool


def run(
    argv: tuple[str, ...], environ: Mapping[str, str], *, given: bytes = b"", within_s: float, limit_bytes: int
) -> Said:
    """Run a program that is `given` something on its standard input, and read what it says.

    Never raises `OSError`: a program that cannot be started has said nothing and has not ended well. Nothing of it runs
    any more when this returns, and its pipes are closed.
    """
    deadline = monotonic() + within_s
    said = bytearray()
    program: subprocess.Popen[bytes] | None = None
    try:
        with signals_held_back():
            program = _start(argv, environ)
        whole = _converse(program, given, said, deadline, limit_bytes)
        return Said(bytes(said), whole and program.wait(max(deadline - monotonic(), 0.0)) == 0)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return Said(bytes(said), ended_well=False)
    finally:
        if program is not None:
            with signals_held_back():
                _end(program)


def _start(argv: tuple[str, ...], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environ),
        cwd="/",
        start_new_session=True,
    )


@contextlib.contextmanager
def signals_held_back() -> Iterator[None]:
    """Let the handlers of INT and TERM wait until the block is left.

    An interrupt in the middle of a start would lose the process. A signal mask would do the same, but the new process
    would inherit it. Only the main thread takes signals, so this does nothing in others.
    """
    came: list[tuple[int, FrameType | None]] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGINT, signal.SIGTERM)
        handlers = {number: found for number in numbers if callable(found := signal.getsignal(number))}
    for taken in handlers:
        signal.signal(taken, lambda *sent: came.append(sent))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for sent, frame in came:
            handlers[signal.Signals(sent)](sent, frame)


def _converse(
    program: subprocess.Popen[bytes], given: bytes, said: bytearray, deadline: float, limit_bytes: int
) -> bool:
    """Write and read in turn, since either pipe may be full. Return whether the program's output ended in time."""
    assert program.stdin is not None
    assert program.stdout is not None
    taking, saying = program.stdin.fileno(), program.stdout.fileno()
    os.set_blocking(taking, False)
    ready = select.poll()
    ready.register(saying, select.POLLIN)
    left = memoryview(given)
    if left:
        ready.register(taking, select.POLLOUT)
    else:
        program.stdin.close()
    while events := ready.poll(max(deadline - monotonic(), 0.0) * 1000):
        for descriptor, _ in events:
            if descriptor == taking:
                left = left[_write(taking, left) :]
                if not left:
                    ready.unregister(taking)
                    program.stdin.close()
                continue
            part = os.read(saying, _CHUNK_BYTES)
            said += part
            if not part or len(said) > limit_bytes:
                return not part
    return False


def _write(descriptor: int, left: memoryview) -> int:
    """How many bytes are done with: those that were taken, or all when the program has closed its input."""
    try:
        return os.write(descriptor, left)
    except BrokenPipeError:
        return len(left)


def _end(program: subprocess.Popen[bytes]) -> None:
    # Once it was waited for, its id may belong to another process, so the group is only signalled before that.
    if program.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    for pipe in (program.stdin, program.stdout):
        if pipe is not None:
            pipe.close()
