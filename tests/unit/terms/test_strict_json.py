"""JSON is read strictly: what other readers repair or overlook is refused, and the place is named."""

from __future__ import annotations

import json

import pytest

from pi_session_mcp.terms.strict_json import (
    MAX_NESTING,
    MAX_NUMBER_CHARACTERS,
    Fault,
    Parsed,
    Path,
    TextFlaw,
    TreeFlaw,
    parse,
)

pytestmark = pytest.mark.timeout(60)

MEBIBYTE = 1024 * 1024


def test_a_document_becomes_an_immutable_tree_in_document_order() -> None:
    parsed = parse(b'{"b": [1, 2.5, {"x": null}], "a": [true, "\\u00e9"]}')

    assert parsed == Parsed({"b": (1, 2.5, {"x": None}), "a": (True, "é")})
    assert isinstance(parsed, Parsed)
    assert isinstance(parsed.tree, dict)
    assert list(parsed.tree) == ["b", "a"]


@pytest.mark.parametrize("text", [b'\xef\xbb\xbf{"a": 1}', b'{\r\n"a":\r\n1\r\n}\r\n', b'\xef\xbb\xbf\r\n{"a": 1}'])
def test_a_byte_order_mark_and_crlf_change_nothing(text: bytes) -> None:
    assert parse(text) == Parsed({"a": 1})


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (b"", 1, 1),
        (b"   ", 1, 4),
        (b"{", 1, 2),
        (b'{"a": 1} {', 1, 10),
        (b'{\n  // off\n  "a": 1\n}', 2, 3),
        (b"{\r\n  /* off */\r\n}", 2, 3),
        (b"{'a': 1}", 1, 2),
        (b'{"a": 01}', 1, 8),
        (b'{"a": +1}', 1, 7),
        (b'{"a": NaN}', 1, 7),
        (b'{"NaN": "Infinity",\n "a": [1, -Infinity] // }', 2, 11),
        (b'{"\xc3\xa9": Infinity}', 1, 7),
        (b'\xef\xbb\xbf{"a" 1}', 1, 6),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", 1, 1),
        (b'{"a": "\t"}', 1, 8),
        (b"{\x00}", 1, 2),
        (b'{"a": nul}', 1, 7),
    ],
)
def test_a_syntax_error_has_a_line_and_a_column(text: bytes, line: int, column: int) -> None:
    assert parse(text) == TextFlaw(Fault.NOT_JSON, line, column)


@pytest.mark.parametrize("text", [b'{"a": 1,}', b'{"a": [1,]}', b'{"a": [1,\r\n]}'])
def test_a_trailing_comma_is_refused(text: bytes) -> None:
    flaw = parse(text)

    assert isinstance(flaw, TextFlaw)
    assert flaw.fault is Fault.NOT_JSON


def test_bytes_that_are_not_utf_8_are_placed() -> None:
    assert parse('{"a": "é",\n "bé'.encode() + b'\xe9": 1}') == TextFlaw(Fault.NOT_UTF8, 2, 5)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_of_unicode_are_refused(encoding: str) -> None:
    flaw = parse('{"a": 1}'.encode(encoding))

    assert isinstance(flaw, TextFlaw)
    assert (flaw.line, flaw.column) in {(1, 1), (1, 2)}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b'{"a": 1, "b": 2, "a": 1}', ("a",)),
        (b'{"a": {"x": [0, {"k": 1, "k": 1}]}, "a": 1}', ("a", "x", 1, "k")),
        (b'{"b": {}, "b": {"c": 1, "c": 2}}', ("b",)),
        (b'{"a": 1, "\\u0061": 1}', ("a",)),
        (b'{"": 1, "": 1}', ("",)),
    ],
)
def test_the_first_repeated_key_is_named_however_it_is_written(text: bytes, path: Path) -> None:
    assert parse(text) == TreeFlaw(Fault.DUPLICATE_KEY, path)


def test_one_key_in_several_objects_is_fine() -> None:
    assert parse(b'{"a": {"a": [{"a": 1}, {"a": 1}]}}') == Parsed({"a": {"a": ({"a": 1}, {"a": 1})}})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b'{"a": "\\ud800"}', ("a",)),
        (b'{"a": ["x", "\\udc00\\ud800"]}', ("a", 1)),
        (b'{"\\udfff": 1}', ("\udfff",)),
    ],
)
def test_half_a_surrogate_pair_is_refused(text: bytes, path: Path) -> None:
    assert parse(text) == TreeFlaw(Fault.LONE_SURROGATE, path)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert parse(b'["\\ud83d\\ude80"]') == Parsed(("\U0001f680",))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_is_refused_one_level_past_the_limit(opening: str, closing: str) -> None:
    def nested(levels: int) -> bytes:
        return (opening * levels + "1" + closing * levels).encode()

    assert isinstance(parse(nested(MAX_NESTING)), Parsed)
    assert parse(nested(MAX_NESTING + 1)) == TextFlaw(Fault.TOO_DEEP, 1, len(opening) * MAX_NESTING + 1)


def test_brackets_beside_each_other_or_in_strings_do_not_nest() -> None:
    assert isinstance(parse(b"[" + b"[],{}," * 100 + b"[]]"), Parsed)
    assert isinstance(parse(b'["' + b"[{" * 100 + b'\\"[[", "' + b"[" * 100 + b'\\\\"]'), Parsed)


@pytest.mark.parametrize("end", [b"", b"\\", b'\\"'])
def test_brackets_in_a_string_that_does_not_end_do_not_nest(end: bytes) -> None:
    assert parse(b'{"a": "' + b"[{" * 100 + end) == TextFlaw(Fault.NOT_JSON, 1, 7)


@pytest.mark.parametrize("number", ["1", "-1", "1.", "1e"])
def test_a_number_is_refused_one_character_past_the_limit(number: str) -> None:
    def of_length(length: int) -> bytes:
        return f'{{"a": [{number.ljust(length, "1")}]}}'.encode()

    assert isinstance(parse(of_length(MAX_NUMBER_CHARACTERS)), Parsed)
    assert parse(of_length(MAX_NUMBER_CHARACTERS + 1)) == TreeFlaw(Fault.NUMBER_TOO_LONG, ("a", 0))


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * MEBIBYTE,
        b"[" + b"[]," * 349_000 + b"[]]",
        b"[" + b"{}," * 349_000 + b"{}]",
        b"[" + b"[]," * 340_000 + b"[" * 40,
        b'"' * MEBIBYTE,
        b'["' + b"\\" * MEBIBYTE,
        b"[" * 40 + b'"' + b"\\n" * 500_000,
        b"[" * 40 + b'"' + b'\\"' * 500_000,
        b"9" * MEBIBYTE,
        b"[1." + b"9" * MEBIBYTE + b"]",
        b"[1e" + b"9" * MEBIBYTE + b"]",
        b"[" + b'"",' * 349_000 + b"NaN]",
        b" " * MEBIBYTE,
        b"{" + b",".join(b'"%x":0' % number for number in range(90_000)) + b',"0":0}',
    ],
    ids=lambda hostile: repr(hostile[:12]),
)
def test_a_hostile_mebibyte_is_answered(hostile: bytes) -> None:
    assert isinstance(parse(hostile), Parsed | TextFlaw | TreeFlaw)


def test_what_the_standard_reader_writes_is_read_the_same() -> None:
    written = {"a": ["\x7f\u2028\x00é", {"b": [None, True, -1, 1.5e10]}]}

    assert parse(json.dumps(written).encode()) == Parsed({"a": ("\x7f\u2028\x00é", {"b": (None, True, -1, 1.5e10)})})
