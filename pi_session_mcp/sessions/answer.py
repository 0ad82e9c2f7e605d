"""The text of an answer, as a client gets it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_ANSWER_BYTES: Final = 65_536
"""UTF-8 bytes of `assistantText`."""

_BLANK: Final = (
    " \t\n\r\v\f\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\ufeff"
)
"""The characters that are trimmed. `str.strip()` would also remove U+0085, U+2028 and control characters."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Valid Unicode of at most `MAX_ANSWER_BYTES` in UTF-8; `truncated` says whether there was more."""

    text: str
    truncated: bool


def answer_from(raw: str) -> Answer:
    """`raw` without lone surrogates, trimmed, and cut at a character boundary."""
    encoded = whole_characters(raw).strip(_BLANK).encode()
    if len(encoded) <= MAX_ANSWER_BYTES:
        return Answer(encoded.decode(), truncated=False)
    # The cut may fall inside of a character. The rest of that character is dropped.
    return Answer(encoded[:MAX_ANSWER_BYTES].decode(errors="ignore"), truncated=True)


def whole_characters(raw: str) -> str:
    """`raw` with U+FFFD for each lone surrogate. Two surrogates that form a pair become their character."""
    return raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
