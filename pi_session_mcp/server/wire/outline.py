"""Finds whose a message is that is too long to be kept. Pure; standard library only.

Some clients write the id last, behind all that made the line too long. So such a line is followed to its end, and only
an outline is kept: the members of the outermost object, without what is inside them.
"""

from __future__ import annotations

import re
from typing import Final

from pi_session_mcp.server.wire.plain_json import depths

MAX_OUTLINE_BYTES: Final = 64 * 1024
"""Of an outline. Whoever exceeds it has no readable id."""
_MAX_TEXT_BYTES: Final = 4096
"""Of one text in it; a longer one is `null` there."""

_PLAIN: Final = re.compile(rb'[^"\[\]{}]*')
_TEXT: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_WHOLE_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WHOLE: Final = re.compile(rb'(?:[^"]++|' + _WHOLE_TEXT.pattern + rb")*+", re.DOTALL)
_MARK: Final = re.compile(_WHOLE_TEXT.pattern + rb"|[\[\]{}]", re.DOTALL)
_BLOCK_BYTES: Final = 4096
_SPACES: Final = b" \t\r"
_QUOTE: Final = ord('"')


class Outline:
    """Is fed with a line piece by piece. `hopeless` when no id will be found, whatever comes."""

    def __init__(self) -> None:
        self.hopeless = False
        self._kept = bytearray()
        self._depth = 0
        self._in_text = False
        self._escaped = False
        self._text_start: int | None = None
        """Where the text that is being read begins in the outline; `None` when it is not kept."""

    def feed(self, piece: bytes) -> None:
        """Follow the line."""
        at = 0
        while at < len(piece) and not self.hopeless:
            at = self._text(piece, at) if self._in_text else self._structure(piece, at)
            self.hopeless = self.hopeless or len(self._kept) > MAX_OUTLINE_BYTES

    def json(self) -> bytes:
        """The outline, once the line has ended. It is no JSON if the line was none."""
        return bytes(self._kept)

    def _structure(self, piece: bytes, at: int) -> int:
        if self._depth > 1:
            at = self._skip(piece, at)
        end = self._plain(piece, at)
        if end == len(piece):
            return end
        mark = piece[end : end + 1]
        if not self._depth and mark != b"{":
            self.hopeless = True
        elif mark == b'"':
            self._begin_text()
        elif mark in b"[{":
            self._open(mark)
        else:
            self._depth -= 1
            self._keep(mark if not self._depth else b"")
        return end + 1

    def _skip(self, piece: bytes, at: int) -> int:
        """Over what is inside of a member, up to the bracket that ends it, or as far as one look goes."""
        whole = _WHOLE.match(piece, at, at + _BLOCK_BYTES)
        assert whole is not None  # it matches nothing as well
        found = depths(_WHOLE_TEXT.sub(b"", whole[0]), self._depth)
        if 1 not in found:
            self._depth = found[-1]
            return whole.end()
        self._depth = 2
        brackets = [mark.start() for mark in _MARK.finditer(whole[0]) if mark[0][:1] != b'"']
        return at + brackets[found.index(1) - 1]

    def _plain(self, piece: bytes, at: int) -> int:
        """Over numbers, literals, commas and spaces; where the next mark is."""
        found = _PLAIN.match(piece, at)
        assert found is not None  # it matches nothing as well
        said = found[0].translate(None, _SPACES)
        if said and not self._depth:
            self.hopeless = True  # something outside the object, so that this is none
        self._keep(said if self._depth == 1 else b"")
        return found.end()

    def _open(self, mark: bytes) -> None:
        self._depth += 1
        if self._depth == 1 and self._kept:
            self.hopeless = True  # a second object
        self._keep(mark if self._depth == 1 else b"null" if self._depth == 2 else b"")

    def _begin_text(self) -> None:
        self._in_text = True
        self._text_start = len(self._kept) if self._depth == 1 else None
        self._keep(b'"' if self._depth == 1 else b"")

    def _text(self, piece: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            self._keep_text(piece[at : at + 1])
            return at + 1
        found = _TEXT.match(piece, at)
        assert found is not None  # it matches nothing as well
        self._keep_text(found[0])
        if found.end() == len(piece):
            return found.end()
        ended = piece[found.end()] == _QUOTE
        self._in_text, self._escaped = not ended, not ended  # else a backslash that ends the piece
        self._keep_text(b'"' if ended else b"\\")
        return found.end() + 1

    def _keep_text(self, said: bytes) -> None:
        if self._text_start is None:
            return
        self._keep(said)
        if len(self._kept) - self._text_start > _MAX_TEXT_BYTES:
            del self._kept[self._text_start :]
            self._keep(b"null")
            self._text_start = None

    def _keep(self, said: bytes) -> None:
        self._kept += said
