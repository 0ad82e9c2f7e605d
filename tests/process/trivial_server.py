"""`serve` with another application: the same descriptors, connection and ending, without sessions and hosts.

Its tools do what `arguments["do"]` says. Variables say how it misbehaves as a whole.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
import warnings
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.server.main import Process, run
from pi_session_mcp.server.wire.protocol import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pi_session_mcp.server.serving import Open

FAULT = os.environ.get("FAULT", "")
CANARY = "canary-text-of-a-stranger"


def judge() -> None:
    """Where the real one reads the configuration."""
    if FAULT == "crash-while-judging":
        raise RuntimeError(CANARY)


def load(_judged: None, process: Process) -> Open:
    """Where the real one imports everything."""
    if FAULT == "slow-loading":
        time.sleep(3600)
    if FAULT == "print-while-loading":
        sys.stdout.write(CANARY + "\n")
        sys.stdout.flush()
    return _Application(process).begin


class _Application:
    def __init__(self, process: Process) -> None:
        import anyio

        self._process = process
        self._never = anyio.Event()
        self.tools = self

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[_Application]:
        if FAULT == "crash-while-opening":
            raise RuntimeError(CANARY)
        yield self
        if FAULT == "crash-while-closing":
            raise RuntimeError(CANARY)

    async def shutdown(self) -> None:
        self._never.set()
        if FAULT == "hang-in-shutdown":
            _busy(3600)
        if FAULT == "await-in-shutdown":
            import anyio

            await anyio.sleep_forever()

    async def call(self, _name: str, arguments: Any, _tell: object) -> Reply:
        """Do what the arguments say."""
        return Reply("done", await self._do(arguments or {}), is_error=False)

    async def _do(self, arguments: dict[str, Any]) -> Any:
        wanted = arguments.get("do")
        if wanted == "wait":
            await self._never.wait()
        if wanted == "count":
            self._process.guard.count(1000, 3)
        return _DEEDS.get(wanted, dict)(**{key: value for key, value in arguments.items() if key != "do"})


def _raise() -> None:
    raise RuntimeError(CANARY)


def _log() -> dict[str, Any]:
    logging.getLogger("somebody").error(CANARY)
    warnings.warn(CANARY, stacklevel=1)
    sys.stderr.write(CANARY)
    return {}


def _busy(seconds: float) -> dict[str, Any]:
    time.sleep(seconds)
    return {}


def _print_everywhere() -> dict[str, Any]:
    sys.stdout.write(CANARY)
    sys.stdout.flush()
    os.write(1, CANARY.encode())
    subprocess.run(["/bin/echo", "-n", CANARY], check=True)
    return {}


def _inherited() -> dict[str, Any]:
    """What a child finds on its stdin, and how many descriptors it has, when all that can be inherited are."""
    script = "import os; print((os.read(0, 10), len(os.listdir('/dev/fd'))))"
    found = subprocess.run([sys.executable, "-I", "-c", script], stdout=subprocess.PIPE, check=True, close_fds=False)
    return {"inherited": found.stdout.decode()}


_DEEDS: dict[Any, Any] = {
    "echo": lambda text: {"echo": text},
    "big": lambda size: {"text": "x" * size},
    "lone-surrogate": lambda: {"text": "a\ud800b", "pair": "\ud83d\ude00"},
    "not-a-number": lambda: {"number": float("nan")},
    "no-json": lambda: {"thing": object()},
    "raise": _raise,
    "print": _print_everywhere,
    "log": _log,
    "busy": _busy,
    "descriptors": _inherited,
}


if __name__ == "__main__":
    run(judge, load, Deadlines(process_shutdown_s=float(os.environ.get("SHUTDOWN_S", "15"))))
