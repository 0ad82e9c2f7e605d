"""Images in a tool's result: which of them a model may be shown. Pure.

Pi scales an image for a model and keeps it small enough for providers. But an image of a kind that providers do not
take, or a broken one, would make them refuse the whole conversation from then on. So those are kept out here.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_IMAGES: Final = 8
"""The most images of one result. The others are named in a note."""
MAX_PIXELS: Final = 36_000_000
"""The most pixels of one image. An 8K screen has 33 million, but a small file can unpack to any number."""

ShownType: TypeAlias = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
"""The types that models take, and that Pi's own `read` shows them."""

_NO_LINE_ENDS: Final = str.maketrans("", "", "\r\n")
_MIME_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9.+-]{0,63}/[a-z0-9][a-z0-9.+-]{0,63}")
_JPEG_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of JPEG that are followed by the image's size (ITU-T T.81, table B.1)."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that may take the place of text number `at`. `data` is base64."""

    at: int
    data: str
    mime_type: ShownType


def decoded(data: object) -> bytes | None:
    """The bytes of a base64 text, or `None` if it is not one. It may be cut into lines, as many encoders do."""
    if not isinstance(data, str):
        return None
    try:
        return binascii.a2b_base64(data.translate(_NO_LINE_ENDS), strict_mode=True)
    except ValueError:
        return None


def named_type(said: object) -> str:
    """The type that a server names, if it has the form of a media type."""
    plain = said.split(";")[0].strip().lower() if isinstance(said, str) else ""
    return plain if _MIME_TYPE.fullmatch(plain) else "unknown type"


def shown_type(content: bytes) -> ShownType | None:
    """The type of an image by its first bytes, if models take it and it is not too large to unpack."""
    for kind, size in _SIZES:
        if (found := size(content)) is not None:
            width, height = found
            return kind if 0 < width * height <= MAX_PIXELS else None
    return None


def _png(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR":
        return None
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


def _gif(content: bytes) -> tuple[int, int] | None:
    if not content.startswith((b"GIF87a", b"GIF89a")):
        return None
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _webp(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"RIFF") or content[8:12] != b"WEBP":
        return None
    match content[12:16]:
        case b"VP8X":
            return int.from_bytes(content[24:27], "little") + 1, int.from_bytes(content[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            sizes = (content[26:28], content[28:30])
            width, height = (int.from_bytes(size, "little") & 0x3FFF for size in sizes)
            return width, height
        case _:
            return None


def _jpeg(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _JPEG_SIZES:
            return int.from_bytes(content[at + 7 : at + 9]), int.from_bytes(content[at + 5 : at + 7])
        if marker == 0xFF:
            at += 1
        else:
            at += 2 + max(2, int.from_bytes(content[at + 2 : at + 4]))
    return None


_SIZES: Final[tuple[tuple[ShownType, Callable[[bytes], tuple[int, int] | None]], ...]] = (
    ("image/png", _png),
    ("image/jpeg", _jpeg),
    ("image/gif", _gif),
    ("image/webp", _webp),
)
