"""What a model does in tests, beside what it does in the demonstration: failing, stalling, breaking off."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pi_session_mcp.demo.model import Step, event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.demo.model import Answer

OVERFLOW = '{"error": {"code": "context_length_exceeded", "message": "maximum context length exceeded"}}'


@dataclass(frozen=True, slots=True)
class Fail(Step):
    """Answer with an HTTP error."""

    status: int
    body: str = '{"error": {"message": "scripted failure"}}'
    adds_message = False

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        answer.send_head(self.status, "application/json")
        answer.wfile.write(self.body.encode())


@dataclass(frozen=True, slots=True)
class Fit(Step):
    """Answer with this text, but refuse a request whose messages are longer than the window, as providers do."""

    text: str
    window_characters: int

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        if len(json.dumps(body["messages"])) > self.window_characters:
            Fail(HTTPStatus.BAD_REQUEST, OVERFLOW).play(answer, body)
        else:
            answer.stream(body, [{"content": self.text}])


@dataclass(frozen=True, slots=True)
class Silence(Step):
    """Take the request and never answer it."""

    adds_message = False

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        answer.wait_for_the_client_to_leave()


@dataclass(frozen=True, slots=True)
class Drop(Step):
    """Send the beginning of an answer, then close the connection."""

    text: str = "half an"
    adds_message = False

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        # We announce more bytes than we send. Otherwise the closed connection would look like a regular end.
        answer.send_head(HTTPStatus.OK, length=1_000_000)
        answer.wfile.write(event(body, {"role": "assistant", "content": self.text}, None))


@dataclass(frozen=True, slots=True)
class Lie(Step):
    """Answer with status 200 and a body that is no event stream."""

    adds_message = False

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        answer.send_head(HTTPStatus.OK)
        answer.wfile.write(b"data: this is no JSON\n\n")


@dataclass(frozen=True, slots=True)
class Finish(Step):
    """Answer with this text and this `finish_reason`, for example `length` or `content_filter`."""

    reason: str
    text: str = ""
    adds_message = False

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        answer.stream(body, [{"content": self.text}], self.reason)


@dataclass(frozen=True, slots=True)
class Slow(Step):
    """Answer with this text in `chunks` parts, `gap_s` seconds apart."""

    text: str
    chunks: int
    gap_s: float

    def play(self, answer: Answer, body: dict[str, Any]) -> None:
        answer.stream(body, self._parts(answer))

    def _parts(self, answer: Answer) -> Iterator[dict[str, Any]]:
        size = max(1, -(-len(self.text) // self.chunks))
        for start in range(0, len(self.text), size):
            if start:
                answer.stopping.wait(self.gap_s)
            yield {"content": self.text[start : start + size]}
