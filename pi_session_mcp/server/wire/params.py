"""Whether the parameters of a message are what the protocol's schema allows.

The MCP SDK's types decide. Importing them costs a fifth of a second, so what every version is known to accept is
accepted here without them, and they are imported for the first message that is anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping

RESERVED: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = RESERVED + "protocolVersion"
CAPABILITIES_KEY: Final = RESERVED + "clientCapabilities"
_INFO_KEY: Final = RESERVED + "clientInfo"

_LISTS: Final = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_BARE: Final = frozenset({"ping", "server/discover", "notifications/initialized"})

Json = dict[str, Any]


def is_enveloped(params: Json | None) -> bool:
    """Whether a request belongs to the era without a handshake: only there the key for the version exists."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def is_sound(method: str, version: str, params: Json | None) -> bool:
    """Whether these may be the parameters of a method, or of a notification, that this version has."""
    return is_certain(method, params) or _is_sound_to_the_sdk(method, version, params)


def is_certain(method: str, params: Json | None) -> bool:
    """Whether every version's schema is known to accept these. Pure."""
    said = params or {}
    if not _is_meta(said.get("_meta", {})):
        return False
    if method == "initialize":
        return (
            isinstance(said.get("protocolVersion"), str)
            and _is_capabilities(said.get("capabilities"))
            and _is_implementation(said.get("clientInfo"))
        )
    if method == "tools/call":
        wanted = isinstance(said.get("name"), str) and isinstance(said.get("arguments", {}), dict)
        return wanted and said.keys() <= {"name", "arguments", "_meta"}
    return method in _BARE or (method in _LISTS and said.get("cursor") is None)


def _is_sound_to_the_sdk(method: str, version: str, params: Json | None) -> bool:
    from mcp_types import methods
    from pydantic import ValidationError

    parse = methods.parse_client_notification if method.startswith("notifications/") else methods.parse_client_request
    try:
        parse(method, version, params)
    except ValidationError:
        return False
    return True


def _is_meta(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    token = value.get("progressToken", 0)
    if not isinstance(token, int | str) or isinstance(token, bool):
        return False
    if VERSION_KEY not in value:
        return True
    info = value.get(_INFO_KEY)
    return (
        not any(key.startswith(RESERVED) for key in value.keys() - {VERSION_KEY, CAPABILITIES_KEY, _INFO_KEY})
        and isinstance(value[VERSION_KEY], str)
        and _is_capabilities(value.get(CAPABILITIES_KEY))
        and (info is None or _is_implementation(info))
    )


def _is_implementation(value: object) -> bool:
    if not _is_object(value) or value.get("icons") is not None:
        return False
    required = all(isinstance(value.get(key), str) for key in ("name", "version"))
    optional = all(isinstance(value.get(key, ""), str) for key in ("title", "description", "websiteUrl"))
    return required and optional


def _is_capabilities(value: object) -> bool:
    """Every schema accepts capabilities that it does not know, whatever their values are."""
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
    """Whether the members of an object (those named, or all) are objects."""
    return _is_object(value) and all(_is_object(value[key]) for key in value if not only or key in only)


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict)
