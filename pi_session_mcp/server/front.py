"""Answers an MCP client's opening before the MCP SDK is loaded. Pure; standard library only.

Loading the SDK takes longer than some clients wait for a server's tools. The SDK stays the authority: it is given the
same messages later, and its answers are compared with these. So the front answers only what it is sure of; the first
message that it is not sure of, and everything after it, waits for the SDK.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pi_session_mcp.server.frames import Notification, Request

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION: Final = "2026-07-28"

_RESERVED: Final = "io.modelcontextprotocol/"
_VERSION_KEY: Final = _RESERVED + "protocolVersion"
_CAPABILITIES_KEY: Final = _RESERVED + "clientCapabilities"
_INFO_KEY: Final = _RESERVED + "clientInfo"
_SERVER_INFO_KEY: Final = _RESERVED + "serverInfo"

_INVALID_PARAMS: Final = -32602
_METHOD_NOT_FOUND: Final = -32601

_NOT_OFFERED: Final = frozenset({"prompts/list", "resources/list", "resources/templates/list"})
"""Asked by clients that do not look at our capabilities first."""
_MAX_GIVEN: Final = 64
_MAX_EARLY: Final = 8
"""Notifications before the first request; the SDK forgets further ones."""

Json = dict[str, Any]


class Given(NamedTuple):
    """A message that was dealt with, and the answer that the client has, if any."""

    message: Request | Notification
    answer: Json | None


class Identity(NamedTuple):
    """What the server says of itself, in wire form."""

    name: str
    version: str
    instructions: str
    tools: Sequence[Mapping[str, Any]]


class _Era(Enum):
    UNKNOWN = "unknown"
    HANDSHAKE = "handshake"
    MODERN = "modern"


class Front:
    """The state of one connection's opening."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._era = _Era.UNKNOWN
        self._initialized: bool | None = False
        """`None` when the SDK may or may not accept requests already."""
        self.given: list[Given] = []
        self.tools_listed = False

    def deal_with(self, message: Request | Notification) -> Given | None:
        """The message with its answer, noted in `given`, or `None` when the SDK has to decide. Then ask no more."""
        if len(self.given) >= _MAX_GIVEN:
            return None
        given = self._answered(message) if hasattr(message, "id") else self._noticed(message)
        if given is not None:
            self.given.append(given)
        return given

    def _noticed(self, message: Request | Notification) -> Given | None:
        """A notification is never answered; what matters is whether it changes later answers."""
        if self._era is _Era.UNKNOWN and len(self.given) >= _MAX_EARLY:
            return None
        if message.method == "notifications/initialized" and self._initialized is False:
            self._initialized = None
        return Given(message, None)

    def _answered(self, message: Any) -> Given | None:
        said = self._say(message.method, message.params)
        if said is None:
            return None
        self.tools_listed = self.tools_listed or message.method == "tools/list"
        return Given(message, {"jsonrpc": "2.0", "id": message.id, **said})

    def _say(self, method: str, params: Json | None) -> Json | None:
        enveloped = _is_enveloped(params)
        if self._era is _Era.UNKNOWN:
            modern = enveloped and method != "initialize"
            self._era = _Era.MODERN if modern else _Era.HANDSHAKE
        if self._era is _Era.MODERN:
            return self._say_modern(method, params) if _is_sound_envelope(params) else None
        if enveloped or not _is_sound_meta(params):
            return None
        return self._say_handshake(method, params or {})

    def _say_handshake(self, method: str, params: Json) -> Json | None:
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {"result": {}}
            case "server/discover":
                return _not_found(method)
            case "tools/list" if self._initialized and _is_first_page(params):
                return {"result": {"tools": self._identity.tools}}
            case "tools/list" if self._initialized is False and _is_first_page(params):
                return {"error": {"code": _INVALID_PARAMS, "message": "Invalid request parameters", "data": ""}}
            case _ if method in _NOT_OFFERED and _is_first_page(params):
                return _not_found(method)
        return None

    def _say_modern(self, method: str, params: Json | None) -> Json | None:
        match method:
            case "server/discover":
                return self._complete(
                    supportedVersions=[MODERN_VERSION],
                    capabilities=_CAPABILITIES,
                    instructions=self._identity.instructions,
                )
            case "tools/list" if _is_first_page(params or {}):
                return self._complete(tools=self._identity.tools)
            case "ping":
                return _not_found(method)
            case _ if method in _NOT_OFFERED and _is_first_page(params or {}):
                return _not_found(method)
        return None

    def _initialize(self, params: Json) -> Json | None:
        sound = _is_capabilities(params.get("capabilities")) and _is_implementation(params.get("clientInfo"))
        wanted = params.get("protocolVersion")
        if not sound or not isinstance(wanted, str):
            return None
        self._initialized = True
        result = {
            "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": self._server_info(),
            "instructions": self._identity.instructions,
        }
        return {"result": result}

    def _complete(self, **result: Any) -> Json:
        """A result of the era without a handshake."""
        shared = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        return {"result": {**result, **shared, "_meta": {_SERVER_INFO_KEY: self._server_info()}}}

    def _server_info(self) -> Json:
        return {"name": self._identity.name, "version": self._identity.version}


_CAPABILITIES: Final[Json] = {"tools": {"listChanged": False}}


def _not_found(method: str) -> Json:
    return {"error": {"code": _METHOD_NOT_FOUND, "message": "Method not found", "data": method}}


# Shapes. Each says yes only to what every version's schema is known to accept.


def _is_enveloped(params: Json | None) -> bool:
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and _VERSION_KEY in meta


def _is_sound_envelope(params: Json | None) -> bool:
    if not _is_enveloped(params) or not _is_sound_meta(params):
        return False
    assert params is not None
    meta = params["_meta"]
    if any(key.startswith(_RESERVED) for key in meta.keys() - {_VERSION_KEY, _CAPABILITIES_KEY, _INFO_KEY}):
        return False
    info = meta.get(_INFO_KEY)
    return (
        meta[_VERSION_KEY] == MODERN_VERSION
        and _is_capabilities(meta.get(_CAPABILITIES_KEY))
        and (info is None or _is_implementation(info))
    )


def _is_sound_meta(params: Json | None) -> bool:
    meta = (params or {}).get("_meta", {})
    token = meta.get("progressToken", 0) if isinstance(meta, dict) else None
    return isinstance(token, int | str) and not isinstance(token, bool)


def _is_first_page(params: Json) -> bool:
    return params.get("cursor") is None


def _is_implementation(value: object) -> bool:
    if not _is_object(value) or value.get("icons") is not None:
        return False
    required = all(isinstance(value.get(key), str) for key in ("name", "version"))
    optional = all(isinstance(value.get(key, ""), str) for key in ("title", "description", "websiteUrl"))
    return required and optional


def _is_capabilities(value: object) -> bool:
    """Capabilities that nobody knows are accepted by every schema, whatever they are."""
    if not _is_object(value):
        return False
    return (
        _all_objects(value.get("experimental", {}))
        and _all_objects(value.get("extensions", {}))
        and _all_objects(value.get("sampling", {}), "context", "tools")
        and _all_objects(value.get("elicitation", {}), "form", "url")
        and _is_roots(value.get("roots", {}))
        and "tasks" not in value
    )


def _is_roots(value: object) -> bool:
    return _is_object(value) and isinstance(value.get("listChanged", False), bool)


def _all_objects(value: object, *only: str) -> bool:
    """An object whose members (those named, or all) are objects."""
    if not _is_object(value):
        return False
    return all(_is_object(value[key]) for key in value if not only or key in only)


def _is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)
