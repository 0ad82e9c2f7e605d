"""A scripted language model, for the demo and tests: a loopback endpoint that answers chat completions as told.

It speaks the streaming half of the OpenAI chat-completions interface, which is what Pi's `openai-completions` uses.
The last user message of a request decides what it answers, so that many sessions can share one endpoint.
"""

from __future__ import annotations

import json
import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pi_session_mcp.deadlines import DEADLINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

PROVIDER = "scripted"
"""The provider's name in the agent directory that `write_agent_directory` makes."""


class Step(ABC):
    """What the model does with one request. Tests have more kinds of steps than the demonstration."""

    adds_message: ClassVar[bool] = True
    """Whether the conversation has one more message of the assistant after it. If not, a retry sends the same again."""

    @abstractmethod
    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        """Answer the request `body`."""


@dataclass(frozen=True, slots=True)
class Say(Step):
    """Answer with this text and stop."""

    text: str

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        """See `Step.play`."""
        answer.stream(body, [{"content": self.text}])


@dataclass(frozen=True, slots=True)
class Call(Step):
    """Call one tool, with this text beside the call."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    text: str = ""

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        """See `Step.play`."""
        function = {"name": self.tool, "arguments": json.dumps(dict(self.arguments))}
        call = {"index": 0, "id": f"call_{len(body['messages'])}", "type": "function", "function": function}
        answer.stream(body, [{"content": self.text or None, "tool_calls": [call]}], "tool_calls")


@dataclass(frozen=True, slots=True)
class Echo(Step):
    """Answer with the prefix and the text of all tool results since the last user message, joined by the separator."""

    prefix: str = ""
    separator: str = ""

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        """See `Step.play`."""
        answer.stream(body, [{"content": self.prefix + self.separator.join(tool_results(body))}])


@dataclass(frozen=True, slots=True)
class Recall(Step):
    """Answer with the prefix and the first user message of the conversation."""

    prefix: str = ""

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        """See `Step.play`."""
        said = next((_text(each.get("content")) for each in body["messages"] if each.get("role") == "user"), "")
        answer.stream(body, [{"content": self.prefix + said}])


@dataclass(frozen=True, slots=True)
class Stall(Step):
    """Send the headers, then wait until the client closes the connection."""

    adds_message = False

    def play(self, answer: Answer, body: dict[str, Any]) -> None:  # noqa: ARG002 - it does not matter what was asked
        """See `Step.play`."""
        answer.send_head(HTTPStatus.OK)
        answer.wait_for_the_client_to_leave()


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
            if not step.adds_message:
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
        super().__init__(("127.0.0.1", 0), Answer)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that left is no error, and any other error shows as a missing answer."""


class Answer(BaseHTTPRequestHandler):
    """The answer to one request, as a step gives it."""

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
        self.server.traffic.take_step(body).play(self, body)

    @property
    def stopping(self) -> threading.Event:
        """Set when the endpoint ends."""
        return self.server.traffic.stopping

    def stream(self, body: dict[str, Any], deltas: Iterable[dict[str, Any]], finish_reason: str = "stop") -> None:
        """Send the parts of one message as events, until the endpoint ends."""
        self.send_head(HTTPStatus.OK)
        for delta in deltas:
            if self.stopping.is_set():
                return
            self.wfile.write(event(body, {"role": "assistant", **delta}, None))
            self.wfile.flush()
        self.wfile.write(event(body, {}, finish_reason) + _usage(body) + b"data: [DONE]\n\n")

    def send_head(self, status: int, content_type: str = "text/event-stream", length: int | None = None) -> None:
        """Send the status and the headers."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        # One request per connection, so that an open connection means a request that is not over.
        self.send_header("Connection", "close")
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.flush()

    def wait_for_the_client_to_leave(self) -> None:
        """Return when the client has closed the connection, or the endpoint ends."""
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


def tool_results(body: dict[str, Any]) -> list[str]:
    """The texts of all tool results that follow the last user message of a request."""
    _, since = _last_turn(body["messages"])
    return [_text(message.get("content")) for message in since if message.get("role") == "tool"]


def event(body: dict[str, Any], delta: dict[str, Any], finish_reason: str | None) -> bytes:
    """One event of an answer to the request `body`."""
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
