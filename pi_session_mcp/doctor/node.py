"""The one program that the doctor runs: Node, for its version and for what Pi says of its files.

Not under a keeper: that would be a second program, and an event loop opens sockets. It runs in a session of its own
and briefly; what it starts in that session is ended with it.
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
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import FrameType

    from pi_session_mcp.runtime.problem import RuntimeCode

ANSWER_WITHIN_S: Final = 5.0
_ANSWER_LIMIT_BYTES: Final = 4096
_CHUNK_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Said:
    """What a program wrote until it ended, was ended, or had said too much; and whether it ended well."""

    text: bytes
    ended_well: bool


def judge(program: Path, environ: Mapping[str, str]) -> RuntimeCode:
    """What is wrong with a Node.js program: it does not run, is too old, or nothing."""
    from pi_session_mcp.runtime.environment import without_node_options
    from pi_session_mcp.runtime.problem import RuntimeCode
    from pi_session_mcp.runtime.versions import node_is_supported

    version = node_version(program, without_node_options(environ))
    if version is None:
        return RuntimeCode.NODE_MISSING
    return RuntimeCode.OK if node_is_supported(version) else RuntimeCode.NODE_VERSION_UNSUPPORTED


def is_at_hand(environ: Mapping[str, str], untrusted: Iterable[Path], prefix: Path | None) -> bool:
    """Whether `runtime install` would find a Node.js, with its npm, that it can use."""
    from pi_session_mcp.runtime.problem import RuntimeCode
    from pi_session_mcp.runtime.toolchain import find_toolchain

    found = find_toolchain(environ, untrusted, prefix)
    return found is not None and found.npm is not None and judge(found.node, environ) is RuntimeCode.OK


def node_version(program: Path, environ: Mapping[str, str], *, within_s: float = ANSWER_WITHIN_S) -> str | None:
    """What `node --version` says; `None` when it does not run, says too much, fails, or takes longer."""
    said = run((str(program), "--version"), environ, within_s=within_s, limit_bytes=_ANSWER_LIMIT_BYTES)
    return said.text.decode("utf-8", "replace").strip() if said.ended_well else None


def run(
    argv: tuple[str, ...], environ: Mapping[str, str], *, given: bytes = b"", within_s: float, limit_bytes: int
) -> Said:
    """Run a program that is `given` something on its standard input, and read what it says. Never raises `OSError`."""
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
    """Let handlers wait until the block is left: an interrupt in the middle of a start would lose the process.

    Not by a mask, which the process would inherit. Only the main thread takes signals, so others hold nothing back.
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
    """Write and read at once, since either pipe may be full; whether the end of what it says came in time."""
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
    """How much was taken; all of it where nobody reads any more."""
    try:
        return os.write(descriptor, left)
    except BrokenPipeError:
        return len(left)


def _end(program: subprocess.Popen[bytes]) -> None:
    # Once it has been waited for, its id may belong to somebody else, unless something of its group is left to hold it;
    # a group that is gone is no error.
    if program.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    for pipe in (program.stdin, program.stdout):
        if pipe is not None:
            pipe.close()
