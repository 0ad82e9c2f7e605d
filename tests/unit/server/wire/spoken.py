"""What clients say: openings of both eras, parameters of many shapes, notifications."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from pi_session_mcp.server.wire.protocol import HANDSHAKE_VERSIONS, MODERN_VERSION

INFO: Final = {"name": "client", "version": "1"}
FULL_INFO: Final = {
    **INFO,
    "title": "Client",
    "description": "A client",
    "websiteUrl": "https://client.example",
    "unknown": [1],
}
CAPABILITIES: Final[dict[str, Any]] = {
    "roots": {"listChanged": True},
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"context": {}, "tools": {}},
    "experimental": {"codex/auth-change": {"deep": [[[1]]]}},
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}},
    "unknown": 7,
}
CODEX_CAPABILITIES: Final[dict[str, Any]] = {
    "experimental": {"codex/auth-change": {}},
    "elicitation": {"form": {}, "url": {}},
}


def envelope(version: Any = MODERN_VERSION, **more: Any) -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": version, f"{prefix}clientCapabilities": {}, **more}
    return {"_meta": {key: value for key, value in meta.items() if value is not ...}}


def handshake(version: Any = "2025-06-18", **more: Any) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": INFO, **more}
    return {key: value for key, value in params.items() if value is not ...}


PREFIX: Final = "io.modelcontextprotocol/"
CLAUDE: Final = envelope(**{f"{PREFIX}clientInfo": FULL_INFO, f"{PREFIX}clientCapabilities": CAPABILITIES})

INITIALIZES: Final = [
    *(handshake(version) for version in (*HANDSHAKE_VERSIONS, MODERN_VERSION, "2099-01-01", "", "x")),
    handshake(capabilities=CAPABILITIES, clientInfo=FULL_INFO),
    handshake("2025-06-18", capabilities=CODEX_CAPABILITIES),
    handshake(_meta={"progressToken": 1, "x": None}),
    {**handshake(), **envelope()},
    handshake(5),
    handshake(None),
    handshake(...),
    handshake(capabilities=...),
    handshake(capabilities=None),
    handshake(capabilities={"roots": {"listChanged": "yes"}}),
    handshake(capabilities={"roots": 1}),
    handshake(capabilities={"experimental": {"x": 1}}),
    handshake(capabilities={"experimental": None}),
    handshake(capabilities={"sampling": {"tools": 1}}),
    handshake(capabilities={"sampling": {"other": 1}}),
    handshake(capabilities={"elicitation": {"form": []}}),
    handshake(capabilities={"extensions": {"x": 1}}),
    handshake(capabilities={"tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}}}),
    handshake(capabilities={"tasks": 1}),
    handshake(clientInfo=...),
    handshake(clientInfo={"name": "client"}),
    handshake(clientInfo={**INFO, "title": 1}),
    handshake(clientInfo={**INFO, "title": None}),
    handshake(clientInfo={**INFO, "websiteUrl": "no address"}),
    handshake(clientInfo={**INFO, "icons": [{"src": 1}]}),
    handshake(_meta=1),
    handshake(_meta=None),
    handshake(_meta={"progressToken": 1.5}),
    handshake(_meta={"progressToken": True}),
]
PARAMS: Final[list[dict[str, Any] | None]] = [
    None,
    {},
    {"cursor": None},
    {"cursor": "x"},
    {"cursor": 1},
    {"other": 1},
    {"_meta": {}},
    {"_meta": None},
    {"_meta": 1},
    {"_meta": {"progressToken": "t", "unknown/key": {}}},
    {"_meta": {"progressToken": []}},
    envelope(),
    CLAUDE,
    {**envelope(), "cursor": None, "other": 1},
    {**envelope(), "cursor": "x"},
    envelope("2025-06-18"),
    envelope("2099-01-01"),
    envelope(None),
    envelope(7),
    envelope(**{f"{PREFIX}clientCapabilities": ...}),
    envelope(**{f"{PREFIX}clientCapabilities": None}),
    envelope(**{f"{PREFIX}clientCapabilities": {"sampling": 1}}),
    envelope(**{f"{PREFIX}clientCapabilities": {"roots": {"listChanged": 1}}}),
    envelope(**{f"{PREFIX}clientCapabilities": {"tasks": {"x": 1}}}),
    envelope(**{f"{PREFIX}clientInfo": None}),
    envelope(**{f"{PREFIX}clientInfo": {"name": "client"}}),
    envelope(**{f"{PREFIX}clientInfo": 1}),
    envelope(**{f"{PREFIX}logLevel": "debug"}),
    envelope(**{f"{PREFIX}logLevel": "loud"}),
    envelope(progressToken=3, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    envelope(progressToken={}),
]
METHODS: Final = [
    "ping",
    "tools/list",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "logging/setLevel",
    "subscriptions/listen",
    "completion/complete",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "tasks/list",
    "unknown",
    "",
    "notifications/initialized",
]
NOTICES: Final = [
    ("notifications/initialized", None),
    ("notifications/initialized", {"_meta": {"x": 1}}),
    ("notifications/initialized", {"_meta": 1}),
    ("notifications/cancelled", {"requestId": 0, "reason": "x"}),
    ("notifications/cancelled", {"requestId": "0"}),
    ("notifications/cancelled", {}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("notifications/roots/list_changed", None),
    ("unknown", {"x": 1}),
]

CALLS: Final[list[dict[str, Any] | None]] = [
    None,
    {},
    {"name": "pi_session_list"},
    {"name": "pi_session_list", "arguments": {}},
    {"name": "pi_session_list", "arguments": {"deep": [{"x": None}]}, "_meta": {"progressToken": 1}},
    {"name": "pi_session_list", "arguments": None},
    {"name": "pi_session_list", "arguments": []},
    {"name": "pi_session_list", "arguments": {}, "other": 1},
    {"name": "pi_session_list", "task": {"ttl": 1}},
    {"name": "pi_session_list", "task": 1},
    {"name": "pi_session_list", "inputResponses": 1},
    {"name": "pi_session_list", "_meta": {"progressToken": None}},
    {"name": "refused"},
    {"name": "unknown"},
    {"name": ""},
    {"name": 1},
    {"name": None},
    {"arguments": {}},
]

Spoken = tuple[str, "dict[str, Any] | None", bool]
"""Method, parameters, and whether an answer is wanted."""

REQUESTS: Final[list[Spoken]] = [
    *(("initialize", params, True) for params in INITIALIZES),
    *((method, params, True) for method, params in product(METHODS, PARAMS)),
    *(("tools/call", params, True) for params in CALLS),
    *(("tools/call", {**(params or {}), **envelope()}, True) for params in CALLS),
]
EVERYTHING: Final[list[Spoken]] = [*REQUESTS, *((method, params, False) for method, params in NOTICES)]

USUAL: Final[list[Spoken]] = [
    ("initialize", handshake("2024-11-05"), True),
    ("server/discover", None, True),
    ("server/discover", CLAUDE, True),
    ("tools/list", None, True),
    ("tools/list", CLAUDE, True),
    ("tools/call", {"name": "pi_session_list", "arguments": {}}, True),
    ("tools/call", {"name": "pi_session_list", **CLAUDE}, True),
    ("ping", None, True),
    ("resources/list", {}, True),
    ("notifications/initialized", None, False),
    ("notifications/cancelled", {"requestId": 0}, False),
]
