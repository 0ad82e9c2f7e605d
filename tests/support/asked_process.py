"""A module of the tests that runs as a process: a request is a line of JSON, and so is the answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

ROOT: Final = Path(__file__).parents[2]


class AskedProcess:
    """The process; one request at a time. It is gone when the block is left."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):  # not read: a child of it may hold the other end
            assert stream is not None
            stream.close()

    def begin(self, request: Mapping[str, Any]) -> None:
        """Send a request; `end` gives its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """The answer to what was begun."""
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer
