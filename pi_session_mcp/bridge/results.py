"""What a model gets of an external tool's result, and what of its failure: nothing but fixed words. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pi_session_mcp.config.strict_json import Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_RESULT_BYTES: Final = 262_144
"""Of the whole result as compact JSON in UTF-8."""
MAX_ENVELOPE_BYTES: Final = 1024
MAX_MESSAGE_CODE_POINTS: Final = 200

TOO_LARGE: Final = f"External MCP result exceeds the bridge limit of {MAX_RESULT_BYTES} bytes; request less data."
FAILED: Final = "External MCP operation failed"
BAD_ARGUMENTS: Final = "Arguments do not match the tool's input schema"
SOURCE_TOO_LARGE: Final = (
    '{"code":"SOURCE_TOO_LARGE","message":"Requested source exceeds the response limit; increase maxBytes."}'
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the model gets: texts, and the structured result, if there was one, beside them."""

    texts: tuple[str, ...]
    details: object = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The call has failed; `text`, one of the fixed ones above, is all that the model learns."""

    text: str = FAILED


Outcome: TypeAlias = Delivered | Failed


def project(result: Mapping[str, Any]) -> Outcome:
    """The outcome of a call from its result as JSON (`content`, `structuredContent`, `isError`)."""
    if result.get("isError"):
        return Failed(SOURCE_TOO_LARGE if _says_source_too_large(result) else FAILED)
    try:
        if len(_compact(result).encode()) > MAX_RESULT_BYTES:
            return Failed(TOO_LARGE)
    except ValueError:  # not finite, or no Unicode
        return Failed()
    return _delivered(result["content"], result.get("structuredContent"))


def _delivered(content: Sequence[Mapping[str, Any]], structured: object) -> Delivered:
    texts = [block["text"] if block["type"] == "text" else _compact(block) for block in content]
    if not texts and structured is not None:
        texts = [_compact(structured)]
    return Delivered(tuple(texts), structured)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# --- the one error that may be told ---------------------------------------------------------------------------------

_URL_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?=\S)")
_DOMAIN_OR_ADDRESS: Final = re.compile(r"[\w-][.\u3002][^\W\d_][\w-]+|\d+(?:\.\d+){3}")
_PATH_SEPARATORS: Final = frozenset("/\\")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories that are no visible text: control, format, surrogate, private, unassigned, line and paragraph end."""


def _says_source_too_large(result: Mapping[str, Any]) -> bool:
    """Whether the error result is exactly the closed object, as text, as structured content, or as both when equal."""
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
    parsed = parse(encoded)  # refuses a key that is said twice, however it is escaped
    return parsed.tree if isinstance(parsed, Parsed) else None


def _is_envelope(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"code", "message"} or value["code"] != "SOURCE_TOO_LARGE":
        return False
    message = value["message"]
    return isinstance(message, str) and _is_plain(message) and len(_compact(value).encode()) <= MAX_ENVELOPE_BYTES


def _is_plain(message: str) -> bool:
    """Whether a message is short visible text that names no place. Look-alikes count as what they look like."""
    seen = unicodedata.normalize("NFKC", message)
    return (
        1 <= len(message) <= MAX_MESSAGE_CODE_POINTS
        and all(unicodedata.category(character) not in _HIDDEN for character in message)
        and _PATH_SEPARATORS.isdisjoint(seen)
        and _URL_SCHEME.search(seen) is None
        and _DOMAIN_OR_ADDRESS.search(seen) is None
    )
