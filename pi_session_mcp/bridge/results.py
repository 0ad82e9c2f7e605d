"""What a model gets of an external tool's result, and that it gets only fixed words of a failure. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from binascii import b2a_base64
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pi_session_mcp.bridge.images import MAX_IMAGES, Image, decoded, named_type, shown_type
from pi_session_mcp.terms.strict_json import Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_RESULT_BYTES: Final = 262_144
"""Of the whole result as compact JSON in UTF-8. Images and sounds do not count: the limit of a line bounds them."""
MAX_ENVELOPE_BYTES: Final = 1024
MAX_MESSAGE_CODE_POINTS: Final = 200

TOO_LARGE: Final = f"External MCP result exceeds the bridge limit of {MAX_RESULT_BYTES} bytes; request less data."
FAILED: Final = "External MCP operation failed"
BAD_ARGUMENTS: Final = "Arguments do not match the tool's input schema"
UNJUDGED_ARGUMENTS: Final = "Arguments cannot be checked against the tool's input schema"
NO_CONTENT: Final = "[The tool's result has no content.]"
UNREADABLE_PART: Final = "[A part of the tool's result cannot be read.]"
OTHER_SHAPE: Final = "[The tool's result does not match the tool's own output schema.]"
SOURCE_TOO_LARGE: Final = (
    '{"code":"SOURCE_TOO_LARGE","message":"Requested source exceeds the response limit; increase maxBytes."}'
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the model gets: texts, and beside them the structured result, if there was one.

    A model that takes images gets each of `images` in place of the text that is a note about it.
    """

    texts: tuple[str, ...]
    details: object = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The call has failed. `text` is one of the fixed texts above, and all that the model learns."""

    text: str = FAILED


Outcome: TypeAlias = Delivered | Failed


def project(result: Mapping[str, Any], *, other_shape: bool = False) -> Outcome:
    """The outcome of a call from its result as JSON (`content`, `structuredContent`, `isError`).

    A result that breaks the protocol is passed on as far as it can be, with a note. `other_shape` adds the note that it
    breaks its tool's own output schema.
    """
    if result.get("isError"):
        return Failed(SOURCE_TOO_LARGE if _says_source_too_large(result) else FAILED)
    try:
        if len(_compact(_without_media(result)).encode()) > MAX_RESULT_BYTES:
            return Failed(TOO_LARGE)
        delivered = _delivered(result)
        if delivered is not None and sum(len(text.encode()) for text in delivered.texts) > MAX_RESULT_BYTES:
            return Failed(TOO_LARGE)  # a note can be longer than the thing that it replaces
    except (ValueError, RecursionError):  # a number that is not finite, or text that is not Unicode
        return Failed()
    if delivered is None or not other_shape:
        return delivered or Failed()
    return replace(delivered, texts=(*delivered.texts, OTHER_SHAPE))


def _without_media(result: Mapping[str, Any]) -> Mapping[str, Any]:
    content = result.get("content")
    if not isinstance(content, list):
        return result
    return {**result, "content": [_without_data(block) for block in content]}


def _without_data(block: object) -> object:
    match block:
        case {"type": "image" | "audio", "data": str(), **rest}:
            return {**rest, "data": ""}
        case {"type": "resource", "resource": {"blob": str(), **inner}, **rest}:
            return {**rest, "resource": {**inner, "blob": ""}}
        case _:
            return block


def _delivered(result: Mapping[str, Any]) -> Delivered | None:
    """The texts of the content. `None` if there is some and none of it can be read."""
    content, structured = result.get("content"), result.get("structuredContent")
    if content is None:
        return _without_content(result, structured)
    blocks = content if isinstance(content, list) else [content]
    texts, images = _read(blocks)
    if blocks and all(text == UNREADABLE_PART for text in texts):
        return None if structured is None else Delivered((_compact(structured), UNREADABLE_PART), structured)
    if not texts and structured is not None:
        texts = [_compact(structured)]
    return Delivered(tuple(texts), structured, tuple(images))


def _without_content(result: Mapping[str, Any], structured: object) -> Delivered:
    """The whole result as JSON, when it has no content: older drafts, and careless servers."""
    if structured is not None:
        return Delivered((_compact(structured),), structured)
    said = {key: value for key, value in result.items() if key not in {"content", "isError", "_meta", "resultType"}}
    return Delivered((_compact(said), NO_CONTENT) if said else (NO_CONTENT,))


# --- blocks ----------------------------------------------------------------------------------------------------------

_LINK_MEMBERS: Final = ("uri", "name", "title", "description", "mimeType", "size")
_RESOURCE_MEMBERS: Final = ("uri", "mimeType", "text")


def _read(blocks: Sequence[object]) -> tuple[list[str], list[Image]]:
    texts: list[str] = []
    images: list[Image] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image", "data": data, **rest}:
                _add_media("Image", data, rest.get("mimeType"), texts, images)
            case {"type": "audio", "data": data, **rest}:
                _add_media("Audio", data, rest.get("mimeType"), texts, None)
            case {"type": "resource", "resource": {"blob": data, **rest}}:
                _add_media("Binary resource", data, rest.get("mimeType"), texts, images)
            case {"type": "resource", "resource": {"text": str()} as resource}:
                texts.append(_compact({"type": "resource", "resource": _only(_RESOURCE_MEMBERS, resource)}))
            case {"type": "resource_link", "uri": str(uri), **rest}:
                link = {"uri": uri, **rest}
                texts.append(_compact({"type": "resource_link", **_only(_LINK_MEMBERS, link)}))
            case _:
                _add_unreadable(texts)
    return texts, images


def _add_unreadable(texts: list[str]) -> None:
    """Add the note, once for several such parts in a row."""
    if texts[-1:] != [UNREADABLE_PART]:
        texts.append(UNREADABLE_PART)


def _only(members: Sequence[str], said: Mapping[Any, Any]) -> dict[str, Any]:
    """Some members, in their order. An address that is the content itself (`data:`) would be base64 as text."""
    kept = {key: value for key, value in said.items() if key in members}
    if str(kept.get("uri", "")).lower().startswith("data:"):
        kept["uri"] = "data:"
    return kept


def _add_media(what: str, data: object, said_type: object, texts: list[str], images: list[Image] | None) -> None:
    """Add the note that replaces an image or other bytes, and the image, if it may be shown."""
    content = decoded(data)
    if content is None:
        _add_unreadable(texts)
        return
    shown = None if images is None or len(images) == MAX_IMAGES else shown_type(content)
    if images is not None and shown is not None:
        images.append(Image(len(texts), b2a_base64(content, newline=False).decode(), shown))
    texts.append(f"[{what} left out: {shown or named_type(said_type)}, {len(content)} bytes.]")


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# --- the one error that may be told ---------------------------------------------------------------------------------

_URL_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?=\S)")
_DOMAIN_OR_ADDRESS: Final = re.compile(r"[\w-][.\u3002][^\W\d_][\w-]+|\d+(?:\.\d+){3}")
_PATH_SEPARATORS: Final = frozenset("/\\")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of invisible text: control, format, surrogate, private, unassigned, line and paragraph end."""


def _says_source_too_large(result: Mapping[str, Any]) -> bool:
    """Whether the error result is exactly the closed object, as text, as structured content, or equal in both."""
    if not result.keys() <= {"content", "structuredContent", "isError"}:
        return False
    said: list[object] = []
    match result.get("content"):
        case []:
            pass
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            said.append(_parsed_envelope(text))
        case _:
            return False
    if result.get("structuredContent") is not None:
        said.append(result["structuredContent"])
    return bool(said) and all(one == said[0] and _is_envelope(one) for one in said)


def _parsed_envelope(text: str) -> object:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return None
    if len(encoded) > MAX_ENVELOPE_BYTES or not text.startswith("{"):
        return None
    parsed = parse(encoded)  # refuses a key that is there twice, also when one is escaped
    return parsed.tree if isinstance(parsed, Parsed) else None


def _is_envelope(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"code", "message"} or value["code"] != "SOURCE_TOO_LARGE":
        return False
    message = value["message"]
    return isinstance(message, str) and _is_plain(message) and len(_compact(value).encode()) <= MAX_ENVELOPE_BYTES


def _is_plain(message: str) -> bool:
    """Whether a message is short visible text without a path or address. Look-alikes count as what they look like."""
    seen = unicodedata.normalize("NFKC", message)
    return (
        1 <= len(message) <= MAX_MESSAGE_CODE_POINTS
        and all(unicodedata.category(character) not in _HIDDEN for character in message)
        and _PATH_SEPARATORS.isdisjoint(seen)
        and _URL_SCHEME.search(seen) is None
        and _DOMAIN_OR_ADDRESS.search(seen) is None
    )
