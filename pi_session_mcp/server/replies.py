"""Results of tool calls. Pure.

A result says the same twice, as text and as structure: some clients give their model only the one, some only the other.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pi_session_mcp.errors import MESSAGES, Code
from pi_session_mcp.server.wire.protocol import Reply
from pi_session_mcp.sessions.answer import whole_characters

_LINE_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
"""Legal in JSON, but line ends to some readers of lines."""


def success(**carried: Any) -> Reply:
    """An answer that carries what the tool promises."""
    return _result({"ok": True, **carried}, is_error=False)


def failure(code: Code) -> Reply:
    """A refusal with its fixed message."""
    return _result({"ok": False, "error": {"code": code.value, "message": MESSAGES[code]}}, is_error=True)


def _result(said: dict[str, Any], *, is_error: bool) -> Reply:
    text = _json(said)
    if not _is_unicode(text):
        said = _repaired(said)
        text = _json(said)
    return Reply(text, said, is_error)


def _json(said: dict[str, Any]) -> str:
    """Compact, and in the text's own characters: escapes would cost the client's model several tokens each."""
    text = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text if text.isascii() else _LINE_BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _repaired(said: Any) -> Any:
    """The same with U+FFFD for each lone surrogate, which no UTF-8 can carry."""
    match said:
        case str():
            return whole_characters(said)
        case dict():
            return {key: _repaired(value) for key, value in said.items()}
        case list() | tuple():
            return [_repaired(value) for value in said]
        case _:
            return said
