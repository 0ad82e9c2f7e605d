"""The protocol of one connection: messages in, answers and calls out. Pure; standard library only.

Both eras of MCP are spoken: that of the handshake (`initialize`), and that in which each request carries an envelope.
The first request decides which one, for good. The MCP SDK's own server is the measure of every answer here:
`tests/unit/server/wire/test_protocol.py` compares the two over all versions, shapes and orders.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pi_session_mcp.server.wire.frames import INVALID_REQUEST, MessageId, Notification, Request, slot
from pi_session_mcp.server.wire.params import CAPABILITIES_KEY, RESERVED, VERSION_KEY, is_enveloped, is_sound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION: Final = "2026-07-28"

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
CONNECTION_CLOSED: Final = -32000
_UNSUPPORTED_VERSION: Final = -32022

_SHARED_METHODS: Final = frozenset(
    {
        *("completion/complete", "prompts/get", "prompts/list", "resources/list", "resources/read"),
        *("resources/templates/list", "tools/call", "tools/list"),
    }
)
HANDSHAKE_METHODS: Final = _SHARED_METHODS | {
    *("initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"),
}
MODERN_METHODS: Final = _SHARED_METHODS | {"server/discover", "subscriptions/listen"}
"""The methods of each era, served here or not: the parameters of one that is not served are judged all the same."""

_MAX_EARLY: Final = 8
"""So many notifications are taken before the first request. Further ones are forgotten."""

Json: TypeAlias = "dict[str, Any]"


class Identity(NamedTuple):
    """What the server says of itself, in wire form."""

    name: str
    version: str
    instructions: str
    tools: Sequence[Mapping[str, Any]]


class Answer(NamedTuple):
    """An answer that is ready to be sent."""

    wire: Json


class Call(NamedTuple):
    """A call of a tool that exists. It is in flight until it is answered, or cancelled by the client."""

    id: MessageId
    name: str
    arguments: Mapping[str, Any] | None
    progress_token: MessageId | None
    """Where the client wants to be told of progress, if it does."""


class Cancelled(NamedTuple):
    """The client does not wait any more for the request in this slot, which must not be answered."""

    slot: MessageId


class Reply(NamedTuple):
    """What a tool answers, as text and as structure: some clients show their model only one of them."""

    text: str
    structure: Json
    is_error: bool


class _Error(NamedTuple):
    code: int
    message: str
    data: Any = None


class _Era(Enum):
    UNKNOWN = "unknown"
    HANDSHAKE = "handshake"
    MODERN = "modern"


class Protocol:
    """The state of one connection."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._names = frozenset(tool["name"] for tool in identity.tools)
        self._era = _Era.UNKNOWN
        self._version = HANDSHAKE_VERSIONS[-1]
        self._ready = False
        """Whether the client has shaken hands, or has at least said that it had."""
        self._early = 0
        self.tools_listed = False

    def hear(self, message: Request | Notification) -> Answer | Call | Cancelled | None:
        """What follows from a message; `None` if nothing does."""
        if isinstance(message, Notification):
            return self._notice(message)
        said = self._decide(message.method, message.params)
        if said is None:
            return _call(message)
        return Answer(_answer(message.id, said))

    def result(self, call: Call, reply: Reply) -> Json:
        """The answer to a call."""
        content = [{"type": "text", "text": reply.text}]
        result = {"content": content, "structuredContent": reply.structure, "isError": reply.is_error}
        return _answer(call.id, self._complete(result) if self._era is _Era.MODERN else result)

    def failure(self, call: Call, code: int, message: str) -> Json:
        """The answer to a call that has no result."""
        return _answer(call.id, _Error(code, message))

    @staticmethod
    def progress(call: Call, count: int) -> Json:
        """The news that a call whose client wants it has come so far."""
        params = {"progressToken": call.progress_token, "progress": count, "message": "running"}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

    def _notice(self, message: Notification) -> Cancelled | None:
        if self._era is _Era.UNKNOWN:
            self._early += 1
            if self._early > _MAX_EARLY:
                return None
        match message.method, message.params:
            case "notifications/cancelled", {"requestId": int() | str() as number} if not isinstance(number, bool):
                return Cancelled(slot(number))
            case "notifications/initialized", params if self._era is not _Era.MODERN:
                self._ready = self._ready or is_sound(message.method, self._version, params)
        return None

    def _decide(self, method: str, params: Json | None) -> Json | _Error | None:
        """A result or an error; `None` for a call that is to be made."""
        if self._era is _Era.UNKNOWN:
            opens_modern = is_enveloped(params) and method != "initialize"
            self._era = _Era.MODERN if opens_modern else _Era.HANDSHAKE
        if self._era is _Era.MODERN:
            return self._decide_modern(method, params)
        return self._decide_after_handshake(method, params)

    def _decide_after_handshake(self, method: str, params: Json | None) -> Json | _Error | None:
        if method != "initialize" and is_enveloped(params):
            return _Error(
                INVALID_REQUEST, "This connection began with a handshake: it takes no requests with an envelope"
            )
        if method not in HANDSHAKE_METHODS:
            return _not_found(method)
        if not is_sound(method, self._version, params):
            return _INVALID
        if method == "initialize":
            return self._initialize((params or {})["protocolVersion"])
        if method == "ping":
            return {}
        if method not in _SERVED:
            return _not_found(method)
        return self._serve(method, params) if self._ready else _INVALID

    def _decide_modern(self, method: str, params: Json | None) -> Json | _Error | None:
        if method == "initialize":
            wanted = (params or {}).get("protocolVersion")
            return _unsupported(wanted if isinstance(wanted, str) else None)
        refused = _refused_envelope(params)
        if refused is not None:
            return refused
        if method not in MODERN_METHODS:
            return _not_found(method)
        if not is_sound(method, MODERN_VERSION, params):
            return _INVALID
        if method == "server/discover":
            return self._complete(
                {
                    "supportedVersions": [MODERN_VERSION],
                    "capabilities": _CAPABILITIES,
                    "instructions": self._identity.instructions,
                    **_NOT_CACHED,
                }
            )
        if method not in _SERVED:
            return _not_found(method)
        served = self._serve(method, params)
        return served if served is None or isinstance(served, _Error) else self._complete({**served, **_NOT_CACHED})

    def _serve(self, method: str, params: Json | None) -> Json | _Error | None:
        if method == "tools/list":
            self.tools_listed = True
            return {"tools": self._identity.tools}
        # The name is the client's text, so it is not repeated.
        return None if (params or {})["name"] in self._names else _Error(INVALID_PARAMS, "Unknown tool")

    def _initialize(self, wanted: str) -> Json:
        self._ready = True
        self._version = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": self._version,
            "capabilities": _CAPABILITIES,
            "serverInfo": self._server_info(),
            "instructions": self._identity.instructions,
        }

    def _complete(self, result: Json) -> Json:
        """A result in the era without a handshake."""
        return {**result, "resultType": "complete", "_meta": {f"{RESERVED}serverInfo": self._server_info()}}

    def _server_info(self) -> Json:
        return {"name": self._identity.name, "version": self._identity.version}


_SERVED: Final = frozenset({"tools/list", "tools/call"})
_CAPABILITIES: Final[Json] = {"tools": {"listChanged": False}}
_NOT_CACHED: Final[Json] = {"ttlMs": 0, "cacheScope": "private"}
_INVALID: Final = _Error(INVALID_PARAMS, "Invalid request parameters", "")


def _call(request: Request) -> Call:
    params = request.params or {}
    return Call(request.id, params["name"], params.get("arguments"), (params.get("_meta") or {}).get("progressToken"))


def _answer(message_id: MessageId, said: Json | _Error) -> Json:
    if not isinstance(said, _Error):
        return {"jsonrpc": "2.0", "id": message_id, "result": said}
    error: Json = {"code": said.code, "message": said.message}
    return {"jsonrpc": "2.0", "id": message_id, "error": error if said.data is None else {**error, "data": said.data}}


def _not_found(method: str) -> _Error:
    return _Error(METHOD_NOT_FOUND, "Method not found", method)


def _refused_envelope(params: Json | None) -> _Error | None:
    meta = (params or {}).get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
        return _Error(INVALID_PARAMS, f"Each request needs {VERSION_KEY} and {CAPABILITIES_KEY} in params._meta")
    wanted = meta[VERSION_KEY]
    if not isinstance(wanted, str):
        return _Error(INVALID_PARAMS, f"{VERSION_KEY} must be a string")
    return None if wanted == MODERN_VERSION else _unsupported(wanted)


def _unsupported(wanted: str | None) -> _Error:
    data: Json = {"supported": [MODERN_VERSION], **({} if wanted is None else {"requested": wanted})}
    return _Error(_UNSUPPORTED_VERSION, "Unsupported protocol version", data)
