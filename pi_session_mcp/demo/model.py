"""A scripted language model, for the demo and tests: a loopback endpoint that answers chat completions as told.

It speaks the streaming half of the OpenAI chat-completions interface, which is what Pi's `openai-completions` uses.
The last user message of a request decides what it answers, so that many sessions can share one endpoint.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from pi_session_mcp.deadlines import DEADLINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

PROVIDER = "scripted"
"""The provider's name in the agent directory that `write_agent_directory` makes."""


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with this text and stop."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Call one tool, with this text beside the call."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Echo:
    """Answer with the prefix and the text of all tool results since the last user message, joined by the separator."""

    prefix: str = ""
    separator: str = ""


@dataclass(frozen=True, slots=True)
class Recall:
    """Answer with the prefix and the first user message of the conversation."""

    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an HTTP error."""

    status: int
    body: str = '{"error": {"message": "scripted failure"}}'


@dataclass(frozen=True, slots=True)
class Fit:
    """Answer with this text, but refuse a request whose messages are longer than the window, as providers do."""

    text: str
    window_characters: int


@dataclass(frozen=True, slots=True)
class Stall:
    """Send the headers, then wait until the client closes the connection."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Take the request and never answer it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Send the beginning of an answer, then close the connection."""

    text: str = "half an"


@dataclass(frozen=True, slots=True)
class Lie:
    """Answer with status 200 and a body that is no event stream."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Answer with this text and this `finish_reason`, for example `length` or `content_filter`."""

    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Slow:
    """Answer with this text in `chunks` parts, `gap_s` seconds apart."""

    text: str
    chunks: int
    gap_s: float


Step = Say | Call | Echo | Recall | Fail | Fit | Stall | Silence | Drop | Lie | Finish | Slow

_OVERFLOW = '{"error": {"code": "context_length_exceeded", "message": "maximum context length exceeded"}}'

_RETRIED = Fail | Stall | Silence | Drop | Lie | Finish
"""Steps that add no assistant message to the conversation, so that a client's retry sends the same messages again."""


class _Traffic:
    """The state that the handlers' threads share with the endpoint's owner. `changed` guards all of it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.connections: set[socket.socket] = set()
        self.changed = threading.Condition()
        self.stopping = threading.Event()
        self._scripts: dict[str, tuple[Step, ...]] = {}
        self._repeats: dict[str, int] = {}

    def script(self, match: str, steps: tuple[Step, ...]) -> None:
        with self.changed:
            self._scripts.pop(match, None)
            self._scripts[match] = steps

    def connected(self, connection: socket.socket) -> None:
        with self.changed:
            self.connections.add(connection)
            self.changed.notify_all()

    def disconnected(self, connection: socket.socket) -> None:
        with self.changed:
            self.connections.discard(connection)
            self.changed.notify_all()

    def disconnect_all(self) -> None:
        with self.changed:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def take_step(self, body: dict[str, Any]) -> Step:
        prompt, since = _last_turn(body.get("messages", []))
        with self.changed:
            steps = self._steps_for(prompt)
            conversation = json.dumps(body.get("messages"))
            repeats = self._repeats.get(conversation, 0)
            position: int = sum(message.get("role") == "assistant" for message in since) + repeats
            step = steps[min(position, len(steps) - 1)]
            if isinstance(step, _RETRIED):
                self._repeats[conversation] = repeats + 1
            self.requests.append(body)
            self.changed.notify_all()
            return step

    def _steps_for(self, prompt: str) -> tuple[Step, ...]:
        matching = [steps for match, steps in self._scripts.items() if match in prompt]
        return matching[-1] if matching else (Say("ok"),)


class ScriptedModel:
    """The endpoint, from `with` to the end of its block. Its members may be used from any thread."""

    def __init__(self) -> None:
        self._traffic = _Traffic()
        self._server = _Server(self._traffic)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="scripted-model")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._traffic.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._traffic.disconnect_all()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        """What a provider's `baseUrl` has to be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies so far, in the order of arrival."""
        with self._traffic.changed:
            return list(self._traffic.requests)

    @property
    def open_connections(self) -> int:
        """Connections on which a client waits or is being answered. Each request has a connection of its own."""
        with self._traffic.changed:
            return len(self._traffic.connections)

    def on(self, match: str, *steps: Step) -> None:
        """Script the answers to a last user message that contains `match`; the latest such script decides.

        The n-th request since that message gets the n-th step, and the last step repeats.
        """
        self._traffic.script(match, steps or (Say("ok"),))

    def wait_until_requested(self, count: int, within_s: float = DEADLINES.demo_model_s) -> bool:
        """Wait until `count` requests have arrived, and return whether they have."""
        return self._wait_until(lambda: len(self._traffic.requests) >= count, within_s)

    def wait_until_idle(self, within_s: float = DEADLINES.demo_model_s) -> bool:
        """Wait until no connection is open, and return whether none is."""
        return self._wait_until(lambda: not self._traffic.connections, within_s)

    def _wait_until(self, condition: Callable[[], bool], within_s: float) -> bool:
        with self._traffic.changed:
            return self._traffic.changed.wait_for(condition, within_s)


class _Server(ThreadingHTTPServer):
    # Not daemon threads: the end of the `with` block waits for them, so nothing of ours outlives it.
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, traffic: _Traffic) -> None:
        self.traffic = traffic
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that left is no error, and any other error shows as a missing answer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.traffic.connected(self.connection)

    def finish(self) -> None:
        self.server.traffic.disconnected(self.connection)
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Log nothing: this class writes to stderr otherwise."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        step = self.server.traffic.take_step(body)
        match step:
            case Silence():
                self._wait_for_the_client_to_leave()
            case Fit(_, window) if len(json.dumps(body["messages"])) > window:
                self._send_head(HTTPStatus.BAD_REQUEST, "application/json")
                self.wfile.write(_OVERFLOW.encode())
            case Fail(status, text):
                self._send_head(status, "application/json")
                self.wfile.write(text.encode())
            case Stall():
                self._send_head(HTTPStatus.OK, "text/event-stream")
                self._wait_for_the_client_to_leave()
            case Lie():
                self._send_head(HTTPStatus.OK, "text/event-stream")
                self.wfile.write(b"data: this is no JSON\n\n")
            case Drop(text):
                # We announce more bytes than we send. Otherwise the closed connection would look like a regular end.
                self._send_head(HTTPStatus.OK, "text/event-stream", length=1_000_000)
                self.wfile.write(_event(body, {"role": "assistant", "content": text}, None))
            case _:
                self._stream(body, step)

    def _stream(self, body: dict[str, Any], step: Say | Call | Echo | Recall | Finish | Fit | Slow) -> None:
        self._send_head(HTTPStatus.OK, "text/event-stream")
        for delta, gap_s in _deltas(step, body):
            if gap_s and self.server.traffic.stopping.wait(gap_s):
                return
            self.wfile.write(_event(body, delta, None))
            self.wfile.flush()
        self.wfile.write(_event(body, {}, _finish_reason(step)) + _usage(body) + b"data: [DONE]\n\n")

    def _send_head(self, status: int, content_type: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        # One request per connection, so that an open connection means a request that is not over.
        self.send_header("Connection", "close")
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.flush()

    def _wait_for_the_client_to_leave(self) -> None:
        with suppress(OSError):
            while self.connection.recv(4096):
                pass


def _last_turn(messages: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The text of the last user message, and the messages after it."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            return _text(messages[index].get("content")), messages[index + 1 :]
    return "", messages


def _text(content: object) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""


def _deltas(
    step: Say | Call | Echo | Recall | Finish | Fit | Slow, body: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], float]]:
    """The chunks of an answer, each with the pause before it in seconds."""
    match step:
        case Say(text) | Finish(_, text) | Fit(text, _):
            yield {"role": "assistant", "content": text}, 0
        case Echo(prefix, separator):
            yield {"role": "assistant", "content": prefix + separator.join(tool_results(body))}, 0
        case Recall(prefix):
            said = next((_text(each.get("content")) for each in body["messages"] if each.get("role") == "user"), "")
            yield {"role": "assistant", "content": prefix + said}, 0
        case Slow(text, chunks, gap_s):
            size = max(1, -(-len(text) // chunks))
            for start in range(0, len(text), size):
                yield {"role": "assistant", "content": text[start : start + size]}, gap_s if start else 0
        case Call(tool, arguments, text):
            function = {"name": tool, "arguments": json.dumps(dict(arguments))}
            call = {"index": 0, "id": f"call_{len(body['messages'])}", "type": "function", "function": function}
            yield {"role": "assistant", "content": text or None, "tool_calls": [call]}, 0


def tool_results(body: dict[str, Any]) -> list[str]:
    """The texts of all tool results that follow the last user message of a request."""
    _, since = _last_turn(body["messages"])
    return [_text(message.get("content")) for message in since if message.get("role") == "tool"]


def _finish_reason(step: Step) -> str:
    match step:
        case Call():
            return "tool_calls"
        case Finish(reason, _):
            return reason
        case _:
            return "stop"


def _event(body: dict[str, Any], delta: dict[str, Any], finish_reason: str | None) -> bytes:
    return _chunk(body, choices=[{"index": 0, "delta": delta, "finish_reason": finish_reason}])


def _usage(body: dict[str, Any]) -> bytes:
    return _chunk(body, choices=[], usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})


def _chunk(body: dict[str, Any], **members: object) -> bytes:
    chunk = {"id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": body.get("model"), **members}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def write_agent_directory(
    path: Path,
    base_url: str,
    *,
    models: Sequence[str] = ("scripted-1",),
    api_key: str = "scripted-key",
    reasoning: bool = True,
) -> None:
    """Make a Pi agent directory whose provider `scripted` is the endpoint at `base_url`.

    With `reasoning` the models have the thinking levels off, minimal, low, medium and high; without it only off.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    provider = {
        "baseUrl": base_url,
        "api": "openai-completions",
        "apiKey": api_key,
        "models": [{"id": model, "reasoning": reasoning} for model in models],
    }
    (path / "models.json").write_text(json.dumps({"providers": {PROVIDER: provider}}), encoding="utf-8")
