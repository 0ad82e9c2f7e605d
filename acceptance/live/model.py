"""The loopback endpoint that is a client's model, and the proxy for all else: of the client, and of Pi's hosts."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, Self

from acceptance.live.talk import Asked, Calls, Result, Use, Words, read_result
from acceptance.live.tunnel import tunnel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from acceptance.live.dialects import Dialect
    from acceptance.live.talk import Answer, Script


PI_HOST: Final = "pi-model.invalid"
"""Where Pi's model is for Pi. No resolver knows the name (RFC 6761): only a host that asks its proxy gets there."""


class Dialog:
    """One run of a client: the script that decides, and what was seen of it. May be used from any thread."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._changed = threading.Condition()
        self._answer: Answer | None = None
        self._rounds = 0
        self.first_offered: frozenset[str] | None = None
        self.calls: list[Use] = []
        self.results: dict[str, str] = {}
        self.trouble = ""
        """The exception of the script, in a word: a result was not what it goes on with."""

    @property
    def is_over(self) -> bool:
        """Whether the script came to its last words."""
        return isinstance(self._answer, Words) and not self.trouble

    def answer(self, asked: Asked) -> Answer:
        """The next answer, or the same one again when the client repeats its question."""
        with self._changed:
            if self.first_offered is None:
                self.first_offered = asked.offered
            self.results |= asked.results
            if self._answer is None or self._is_answered(asked):
                self._answer = self._next(asked)
                self._changed.notify_all()
            return self._answer

    def wait_until_called(self, tool: str, times: int, within_s: float) -> bool:
        """Wait until the script has called `tool` so many times; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: sum(use.tool == tool for use in self.calls) >= times, within_s)

    def _is_answered(self, asked: Asked) -> bool:
        return isinstance(self._answer, Calls) and all(call in asked.results for call, _ in self._answer.uses)

    def _next(self, asked: Asked) -> Answer:
        try:
            if self._answer is None:
                uses = next(self._script)
            else:
                assert isinstance(self._answer, Calls)
                uses = self._script.send([_read(asked, call) for call, _ in self._answer.uses])
        except StopIteration as over:
            return Words(over.value)
        except (LookupError, TypeError) as error:
            self.trouble = type(error).__name__
            return Words("A result was not what it should be.")
        return self._calls(uses)

    def _calls(self, uses: Sequence[Use]) -> Calls:
        self._rounds += 1
        self.calls += uses
        return Calls(tuple((f"call_{self._rounds}_{number}", use) for number, use in enumerate(uses)))


def _read(asked: Asked, call: str) -> Result:
    return read_result(asked.results[call])


class ClientModel:
    """The endpoint, from `with` to the end of its block. `dialog` is what answers."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialog: Dialog | None = None
        self.strange: list[str] = []
        """Every request for something else than a model: method and target."""
        self._server = _Server(dialect, lambda: self.dialog, self.strange)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="client-model")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def tunnels(self) -> int:
        """How often a Pi host has asked for a way to Pi's model."""
        return self._server.tunnels

    def lead_to(self, port: int) -> None:
        """From now on the proxy stands for Pi's model, which is at this port of the loopback interface."""
        self._server.pi_port = port


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a client that keeps a connection open must not hold us up

    def __init__(self, dialect: Dialect, dialog: Callable[[], Dialog | None], strange: list[str]) -> None:
        self.dialect, self.dialog, self.strange = dialect, dialog, strange
        self.pi_port: int | None = None
        self.tunnels = 0
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that left is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Log nothing: this class writes to stderr otherwise."""

    def do_HEAD(self) -> None:
        """Claude Code looks whether its endpoint is there."""
        self._send(200, "text/plain", b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.path.partition("?")[0] != self.server.dialect.path:
            self._refuse()
            return
        asked, dialog = self.server.dialect.read(body), self.server.dialog()
        answer: Answer = Words("ok")
        if asked.is_work and dialog is not None:
            answer = dialog.answer(asked)
        self._send(200, "text/event-stream", self.server.dialect.stream(answer))

    def do_CONNECT(self) -> None:
        """A tunnel to Pi's model, which nobody reaches otherwise; all else is strange."""
        if self.path != f"{PI_HOST}:80" or self.server.pi_port is None:
            self._refuse()
            return
        self.server.tunnels += 1
        with socket.create_connection(("127.0.0.1", self.server.pi_port)) as far:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            tunnel(self.connection, far)
        self.close_connection = True

    def _refuse(self) -> None:
        self.server.strange.append(f"{self.command} {self.path}")
        self._send(404, "application/json", b"{}")

    do_GET = _refuse  # noqa: N815 - the name is the base class's

    def _send(self, status: int, content_type: str, content: bytes) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)
