"""A raw MCP client for process tests: JSON lines over a child's pipes, and nothing that hides what is on them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SERVE = (sys.executable, "-m", "pi_session_mcp", "serve")
PATIENCE_S = 30.0
"""For a busy machine. No test passes by waiting this long."""

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Child:
    """A server started for one test. Leaving the block kills and reaps it, whatever has happened."""

    def __init__(
        self,
        environment: Mapping[str, str],
        command: Sequence[str] = SERVE,
        *,
        cwd: Path | None = None,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        hears_stderr: bool = True,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        self.stderr = b""
        self._unread = b""
        self._next_id = 1
        self._heard = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        if hears_stderr:
            self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        self._join_listener(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    # --- what we say ----------------------------------------------------------------------------------------------

    def send(self, message: object) -> None:
        """Send a message as one line."""
        self.send_raw(json.dumps(message).encode() + b"\n")

    def send_raw(self, data: bytes) -> None:
        """Send bytes. A server that has ended by itself does not get them; who waits for an answer sees that end."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def close_stdin(self) -> None:
        """End the input."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def signal(self, number: int) -> None:
        """Send a signal to the server, and to nobody else."""
        os.kill(self.process.pid, number)

    def start_request(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        self._next_id += 1
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, **({"params": params} if params else {})})
        return self._next_id

    # --- what we hear ---------------------------------------------------------------------------------------------

    def receive(self, within_s: float = PATIENCE_S) -> Any:
        """The next line, parsed. Raises `TimeoutError`, or `EOFError` at the end of output."""
        return json.loads(self.receive_line(within_s))

    def receive_line(self, within_s: float = PATIENCE_S) -> bytes:
        """The next line, without its end."""
        deadline = monotonic() + within_s
        while b"\n" not in self._unread:
            self._read_more(deadline)
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def rest(self, within_s: float = PATIENCE_S) -> list[Any]:
        """Everything up to the end of output, parsed line by line."""
        deadline = monotonic() + within_s
        try:
            while True:
                self._read_more(deadline)
        except EOFError:
            lines, self._unread = self._unread.splitlines(), b""
            return [json.loads(line) for line in lines]

    def answer_to(self, request_id: object, within_s: float = PATIENCE_S) -> Any:
        """The answer to a request; other messages that come before it are passed over."""
        deadline = monotonic() + within_s
        while True:
            message = self.receive(deadline - monotonic())
            if message.get("id") == request_id and "method" not in message:
                return message

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return its whole answer."""
        return self.answer_to(self.start_request(method, params))

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its structured result."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        return answer["result"]["structuredContent"]

    def initialize(self, version: str = "2025-06-18") -> Any:
        """The handshake; returns its result."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = self.request("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    # --- how it ends ----------------------------------------------------------------------------------------------

    def signal_until_it_ends(self, number: int) -> int:
        """Send a signal again and again, since two of a kind that come together are one; the exit status."""
        while self.process.poll() is None:
            self.signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)
        return self.wait()

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """The exit status, once the process has ended and all of its stderr was read."""
        status = self.process.wait(within_s)
        self._join_listener(within_s)
        return status

    @property
    def diagnostics(self) -> list[dict[str, Any]]:
        """The complete lines of stderr so far. Raises `ValueError` for one that is no JSON."""
        return [json.loads(line) for line in self.stderr.split(b"\n")[:-1]]

    def wait_for_diagnostic(self, event: str, within_s: float = PATIENCE_S, *, after: int = 0) -> dict[str, Any]:
        """The first diagnostic of that kind that comes after so many others of it. Raises `TimeoutError`."""
        deadline = monotonic() + within_s
        while True:
            found = [diagnostic for diagnostic in self.diagnostics if diagnostic["event"] == event]
            if len(found) > after:
                return found[after]
            if monotonic() > deadline:
                raise TimeoutError(event)
            self._heard.wait(0.5)
            self._heard.clear()

    def _join_listener(self, within_s: float) -> None:
        if self._listener.ident is not None:
            self._listener.join(within_s)

    def _read_more(self, deadline: float) -> None:
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        if not select.select([fd], [], [], max(0.0, deadline - monotonic()))[0]:
            raise TimeoutError(self.stderr.decode("utf-8", "replace"))
        chunk = os.read(fd, 65536)
        if not chunk:
            raise EOFError(self.stderr.decode("utf-8", "replace"))
        self._unread += chunk

    def _listen(self) -> None:
        assert self.process.stderr is not None
        while chunk := os.read(self.process.stderr.fileno(), 65536):
            self.stderr += chunk
            self._heard.set()
