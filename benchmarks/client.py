"""A server command as a child, and an MCP client on its pipes that is quick enough not to be measured itself."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import psutil

from benchmarks import tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

ANSWER_WITHIN_S: Final = 30.0
SETTLED_WITHIN_S: Final = 30.0
END_WITHIN_S: Final = 10.0
_CHUNK_BYTES: Final = 262_144
_SAID: Final = 300


class Failed(Exception):  # noqa: N818 - an outcome, not a defect of this program
    """A server did not do what it was asked, or not in time. `said` is its own account, if there is one."""

    def __init__(self, what: str, said: object = "") -> None:
        super().__init__(f"{what}: {str(said)[:_SAID]}" if said else what)


class Answer(NamedTuple):
    """An answer, and when it was read (`perf_counter`)."""

    id: int
    message: dict[str, Any]
    at: float


class Launch(NamedTuple):
    """How a server is started. `deadline` is when everything has to be over (`perf_counter`)."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    deadline: float
    answer_within_s: float = ANSWER_WITHIN_S


class Client:
    """One run of a server. Leaving the context ends every process of it."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._last_id = 0
        self._asked = "nothing"
        self._lines: deque[tuple[bytes, float]] = deque()
        self._rest = b""
        self._known: dict[int, psutil.Process] = {}

    def __enter__(self) -> Self:
        self._errors = self._launch.directory / "stderr"
        self.spawned_at = time.perf_counter()
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                self._launch.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(self._launch.environment),
                cwd=self._launch.directory,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._note_processes()
        for process in self._known.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        with suppress(OSError):
            self._input.close()
        self._output.close()

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    # --- talking -----------------------------------------------------------------------------------------------------

    def handshake(self) -> tuple[float, float]:
        """Open the connection and list the tools; when `initialize` and `tools/list` were answered."""
        client = {"name": "benchmark", "version": "1"}
        opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        initialized = self.request("initialize", opening).at
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = self.request("tools/list", {})
        tools = listed.message["result"]["tools"]
        if len(tools) != 8:
            raise Failed("the server lists other tools", [tool["name"] for tool in tools])
        return initialized, listed.at

    def request(self, method: str, params: Mapping[str, object]) -> Answer:
        """Ask, and wait for the answer. Raises `Failed`."""
        asked = self.send(method, params)
        answer = self.next()
        if answer.id != asked:
            raise Failed("the server answered something else")
        return answer

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool, and return the structured result. Raises `Failed`, also for a refusal."""
        return content_of(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def timed_call(self, tool: str, **arguments: object) -> tuple[float, dict[str, Any]]:
        """As `call`, with the seconds that the client waited."""
        began = time.perf_counter()
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        return answer.at - began, content_of(answer)

    def send_call(self, tool: str, **arguments: object) -> int:
        """Call a tool without waiting; the id under which `next` returns the answer."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def send(self, method: str, params: Mapping[str, object]) -> int:
        """Ask without waiting."""
        self._last_id += 1
        self._asked = str(params.get("name", method))
        self._write({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def next(self) -> Answer:
        """The next answer; notifications are passed over. Raises `Failed`."""
        until = min(time.perf_counter() + self._launch.answer_within_s, self._launch.deadline)
        while True:
            line, at = self._line(until)
            message = json.loads(line)
            if "id" in message and "method" not in message:
                if "result" not in message:
                    raise Failed("the server answered an error", message)
                return Answer(message["id"], message, at)

    def _write(self, message: Mapping[str, object]) -> None:
        try:
            self._input.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._input.flush()
        except BrokenPipeError:
            raise Failed("the server is gone", self._last_words()) from None

    def _line(self, until: float) -> tuple[bytes, float]:
        while not self._lines:
            left_s = until - time.perf_counter()
            if left_s <= 0 or not self._poll.poll(left_s * 1000):
                over = time.perf_counter() >= self._launch.deadline
                late = f"{self._asked} was not answered within {self._launch.answer_within_s:.0f} s"
                raise Failed(
                    f"the time was over while {self._asked} was not answered" if over else late, self._last_words()
                )
            data = os.read(self._output.fileno(), _CHUNK_BYTES)
            at = time.perf_counter()
            if not data:
                raise Failed("the server is gone", self._last_words())
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend((line, at) for line in lines)
        return self._lines.popleft()

    def _last_words(self) -> str:
        return self._errors.read_text(encoding="utf-8", errors="replace").strip()[-_SAID:]

    def settle(self) -> None:
        """Return when the server and what it started do nothing any more; soon in any case. Raises `Failed`."""
        tree.settle(self.pid, SETTLED_WITHIN_S)
        if self._process.poll() is not None:
            raise Failed("the server is gone", self._last_words())

    # --- ending ------------------------------------------------------------------------------------------------------

    def end(self) -> tuple[float, float, int]:
        """Close the server's stdin: seconds until it was gone, until its last process was, and how many are left."""
        self._note_processes()
        began = time.perf_counter()
        self._input.close()
        ended = tree.watch_end(self._process, self._known.values(), END_WITHIN_S)
        return ended.server - began, ended.last - began, ended.left

    def _note_processes(self) -> None:
        for process in tree.processes(self.pid):
            self._known.setdefault(process.pid, process)


def content_of(answer: Answer) -> dict[str, Any]:
    """The structured content of a tool's answer. Raises `Failed` for a refusal."""
    result = answer.message["result"]
    content: dict[str, Any] = result["structuredContent"]
    if result.get("isError") or not content.get("ok"):
        raise Failed("the server refused", content)
    return content
