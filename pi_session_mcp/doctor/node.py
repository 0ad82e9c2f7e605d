"""The one program that the doctor runs: `node --version`.

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
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import FrameType

    from pi_session_mcp.runtime.problem import RuntimeCode

ANSWER_WITHIN_S: Final = 5.0
_ANSWER_LIMIT_BYTES: Final = 4096


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
    deadline = monotonic() + within_s
    node: subprocess.Popen[bytes] | None = None
    try:
        with signals_held_back():
            node = _start(program, environ)
        said = _read_to_end(node, deadline)
        if said is None or node.wait(max(deadline - monotonic(), 0.0)) != 0:
            return None
        return said.decode("utf-8", "replace").strip()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    finally:
        if node is not None:
            with signals_held_back():
                _end(node)


def _start(program: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program, "--version"],
        stdin=subprocess.DEVNULL,
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


def _read_to_end(node: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    assert node.stdout is not None
    said = b""
    readable = select.poll()
    readable.register(node.stdout, select.POLLIN)
    while readable.poll(max(deadline - monotonic(), 0.0) * 1000):
        part = os.read(node.stdout.fileno(), _ANSWER_LIMIT_BYTES)
        said += part
        if not part:
            return said
        if len(said) > _ANSWER_LIMIT_BYTES:
            return None
    return None


def _end(node: subprocess.Popen[bytes]) -> None:
    # Once it has been waited for, its id may belong to somebody else, unless something of its group is left to hold it;
    # a group that is gone is no error.
    if node.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(node.pid, signal.SIGKILL)
        node.wait()
    if node.stdout is not None:
        node.stdout.close()
