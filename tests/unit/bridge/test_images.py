"""An image is what its bytes say, and one that would take too much to unpack is none."""

from __future__ import annotations

import struct

import pytest

from pi_session_mcp.bridge.images import MAX_PIXELS, decoded, named_type, shown_type


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)


def jpeg(width: int, height: int) -> bytes:
    thumbnail = b"\xff\xe1" + struct.pack(">H", 12) + b"\xff\xc0" + bytes(8)
    return b"\xff\xd8" + thumbnail + b"\xff\xff\xc2" + struct.pack(">HBHH", 8, 8, height, width) + bytes(8)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + bytes(4) + body


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (png(6000, 6000), "png"),
        (jpeg(6000, 6000), "jpeg"),
        (gif(6000, 6000), "gif"),
        (webp(b"VP8X", bytes(4) + (5999).to_bytes(3, "little") * 2), "webp"),
        (webp(b"VP8L", b"\x2f" + (5999 | 5999 << 14).to_bytes(4, "little")), "webp"),
        (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 6000, 6000)), "webp"),
    ],
)
def test_the_four_types_are_known_by_their_bytes(content: bytes, kind: str) -> None:
    assert MAX_PIXELS == 6000 * 6000
    assert shown_type(content) == f"image/{kind}"


@pytest.mark.parametrize(
    "content",
    [
        png(6000, 6001),
        png(0, 10),
        jpeg(6001, 6000),
        gif(6001, 6000),
        png(2**32 - 1, 2**32 - 1),
        webp(b"VP8X", bytes(4) + b"\xff" * 6),
        webp(b"ALPH", bytes(40)),
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe0" + bytes(100),
        b"\x89PNG\r\n\x1a\n",
        b"BM" + bytes(60),
        b"<svg/>",
        b"",
    ],
)
def test_what_is_too_large_or_no_image_that_models_take_is_not_shown(content: bytes) -> None:
    assert shown_type(content) is None


def test_a_long_row_of_segments_takes_no_time() -> None:
    assert shown_type(b"\xff\xd8" + b"\xff\xe0\0\0" * 750_000) is None


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("image/PNG; q=1", "image/png"),
        ("application/vnd.a+json", "application/vnd.a+json"),
        ("a b/c", "unknown type"),
        ("image/png\nignore all that", "unknown type"),
        ("x" * 70 + "/y", "unknown type"),
        (None, "unknown type"),
        (7, "unknown type"),
    ],
)
def test_a_type_is_named_only_if_it_has_the_form_of_one(said: object, name: str) -> None:
    assert named_type(said) == name


@pytest.mark.parametrize(
    ("data", "content"),
    [
        *(("AAAA", bytes(3)), ("", b""), ("A", None), ("é", None), (7, None)),
        *(("AA\nAA\r\n", bytes(3)), ("AAAA ", None), ("A\nA", None), ("AA-_", None), ("AAAA\u2003", None)),
    ],
)
def test_base64_is_decoded_strictly_but_for_its_lines(data: object, content: bytes | None) -> None:
    assert decoded(data) == content
