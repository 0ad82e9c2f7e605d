"""The two interfaces that the clients' models speak, as far as the clients need them. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from acceptance.live.talk import Asked, Calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from acceptance.live.talk import Answer

_ID = "scripted"
_PREFIX = "mcp__pi-session-mcp__"
_NAMESPACE = "mcp__pi_session_mcp"


class Dialect(Protocol):
    """How requests are read and answers are written."""

    path: str

    def read(self, body: dict[str, Any]) -> Asked:
        """What the request asks."""

    def stream(self, answer: Answer) -> bytes:
        """The answer as server-sent events."""


class Messages:
    """Anthropic's Messages, which Claude Code speaks."""

    path = "/v1/messages"

    def read(self, body: dict[str, Any]) -> Asked:
        """Our tools carry a prefix; the others keep their names."""
        offered = frozenset(str(tool.get("name")).removeprefix(_PREFIX) for tool in body.get("tools") or ())
        blocks = (
            block
            for message in body.get("messages", ())
            if isinstance(message.get("content"), list)
            for block in message["content"]
        )
        results = {
            block["tool_use_id"]: _text(block.get("content")) for block in blocks if block["type"] == "tool_result"
        }
        return Asked(offered, results)

    def stream(self, answer: Answer) -> bytes:
        """One block for each call, or one of text."""
        return b"".join(_event(kind, {"type": kind, **members}) for kind, members in self._events(answer))

    def _events(self, answer: Answer) -> Iterator[tuple[str, dict[str, Any]]]:
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": _ID, "type": "message", "role": "assistant", "model": _ID, "content": [], "usage": usage}
        yield "message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None}}
        for index, (block, delta) in enumerate(self._blocks(answer)):
            yield "content_block_start", {"index": index, "content_block": block}
            yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
        reason = "tool_use" if isinstance(answer, Calls) else "end_turn"
        yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}}
        yield "message_stop", {}

    def _blocks(self, answer: Answer) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        if not isinstance(answer, Calls):
            yield {"type": "text", "text": ""}, {"type": "text_delta", "text": answer.text}
            return
        for call, use in answer.uses:
            block = {"type": "tool_use", "id": call, "name": _PREFIX + use.tool, "input": {}}
            yield block, {"type": "input_json_delta", "partial_json": json.dumps(dict(use.arguments))}


class Responses:
    """OpenAI's Responses, which Codex speaks."""

    path = "/v1/responses"

    def read(self, body: dict[str, Any]) -> Asked:
        """The tools of a server stand in a namespace of its own."""
        offered: set[str] = set()
        for tool in body.get("tools") or ():
            ours = tool.get("type") == "namespace" and tool.get("name") == _NAMESPACE
            offered |= {str(each["name"]) for each in tool["tools"]} if ours else {str(tool.get("name"))}
        results = {
            item["call_id"]: _text(item.get("output"))
            for item in body.get("input", ())
            if item.get("type") == "function_call_output"
        }
        return Asked(frozenset(offered), results)

    def stream(self, answer: Answer) -> bytes:
        """One item for each call, or one message."""
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        items = [_event("response.output_item.done", _item(item)) for item in self._items(answer)]
        completed = {"type": "response.completed", "response": {"id": _ID, "usage": usage}}
        created = {"type": "response.created", "response": {"id": _ID}}
        return b"".join([_event("response.created", created), *items, _event("response.completed", completed)])

    def _items(self, answer: Answer) -> Iterator[dict[str, Any]]:
        if not isinstance(answer, Calls):
            content = [{"type": "output_text", "text": answer.text}]
            yield {"type": "message", "role": "assistant", "id": _ID, "content": content}
            return
        for call, use in answer.uses:
            words = {"name": use.tool, "namespace": _NAMESPACE, "arguments": json.dumps(dict(use.arguments))}
            yield {"type": "function_call", "call_id": call, **words}


def _item(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


def _text(content: object) -> str:
    """The text of a result, which is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _event(kind: str, members: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(members)}\n\n".encode()
