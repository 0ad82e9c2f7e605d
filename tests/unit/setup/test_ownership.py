"""The records: written whole, read strictly, never repaired."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_session_mcp.setup.ownership import (
    MAX_BYTES,
    MAX_RECORDS,
    Book,
    Ownership,
    OwnershipUnavailable,
    Previous,
    Record,
    parse,
)
from pi_session_mcp.setup.targets import parse as target

if TYPE_CHECKING:
    from pathlib import Path

PLACE = "1" * 64


def record(place: str = PLACE, **changes: Any) -> Record:
    fields = {
        "target": "codex:user:pi-session-mcp",
        "place": place,
        "registration": "2" * 64,
        "release": f"editable:{'3' * 64}",
        "previous": Previous(registration="4" * 64, release="5" * 64),
        "phase": "pending",
        "transaction_id": "6" * 32,
    }
    return Record(**{**fields, **changes})


@pytest.fixture
def ownership(tmp_path: Path) -> Ownership:
    return Ownership(tmp_path)


def test_what_is_written_is_read_and_nothing_of_it_is_a_path(ownership: Ownership, tmp_path: Path) -> None:
    book = Book().having(record())
    ownership.write(book)
    assert ownership.read() == book
    text = (tmp_path / "ownership.json").read_text()
    assert "/" not in text
    assert (tmp_path / "ownership.json").stat().st_mode & 0o777 == 0o600


def test_no_file_means_no_records(ownership: Ownership) -> None:
    assert ownership.read() == Book()


def test_a_record_takes_the_place_of_its_own_earlier_one_only() -> None:
    book = Book().having(record()).having(record("7" * 64)).having(record(phase="owned"))
    assert len(book.records) == 2
    found = book.find(target("codex:user"), PLACE)
    assert found is not None
    assert not found.is_pending
    assert book.without(target("codex:user"), PLACE).records == (record("7" * 64),)
    assert book.pending_targets() == (target("codex:user"),)


def test_the_last_record_that_fits_is_taken_and_the_next_is_not() -> None:
    book = Book()
    for number in range(MAX_RECORDS):
        book = book.having(record(f"{number:064x}"))
    with pytest.raises(OwnershipUnavailable):
        book.having(record("f" * 64))
    assert book.having(record(f"{0:064x}", phase="owned")).records[-1].phase == "owned"


def test_a_full_book_fits_into_the_file(ownership: Ownership) -> None:
    full = (record(f"{number:064x}", phase="owned", previous=None) for number in range(MAX_RECORDS))
    book = Book(records=tuple(full))
    ownership.write(book)
    assert ownership.read() == book


GOOD = json.loads(Book().having(record()).model_dump_json(by_alias=True))


def spoiled(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "records": [{**GOOD["records"][0], **changes}]}


@pytest.mark.parametrize(
    "tree",
    [
        {**GOOD, "schemaVersion": 2},
        {**GOOD, "schemaVersion": "1"},
        {**GOOD, "schemaVersion": True},
        {**GOOD, "schemaVersion": 1.0},
        {**GOOD, "schemaVersion": None},
        {**GOOD, "schemaVersion": [1]},
        {"records": GOOD["records"]},
        {"schemaVersion": 1},
        {},
        {**GOOD, "more": 1},
        {"schema_version": 1, "records": []},
        {**GOOD, "records": GOOD["records"] * 2},
        {**GOOD, "records": {}},
        spoiled(more=1),
        spoiled(target="codex:user"),
        spoiled(target="codex:local:pi-session-mcp"),
        spoiled(place="1" * 63),
        spoiled(place="G" * 64),
        spoiled(place=f"{'1' * 64}\n"),
        spoiled(registration=None),
        spoiled(release="x:" + "3" * 64),
        spoiled(previous="none"),
        spoiled(previous={"registration": "4" * 64}),
        spoiled(phase="done"),
        spoiled(transactionId="6" * 31),
        [],
        None,
        "text",
    ],
)
def test_anything_that_we_would_not_have_written_is_refused(tree: object) -> None:
    with pytest.raises(OwnershipUnavailable):
        parse(json.dumps(tree).encode())


def test_the_good_one_is_not_refused() -> None:
    assert parse(json.dumps(GOOD).encode()) == Book().having(record())


FIELDS = [("", name) for name in GOOD] + [("records", name) for name in GOOD["records"][0]]
FIELDS += [("previous", name) for name in GOOD["records"][0]["previous"]]
OTHER_TYPES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    1.0,
    2,
    "",
    "x",
    "1",
    [],
    [None],
    {},
    {"x": 1},
    ["owned"],
    "owned\0",
)


@pytest.mark.parametrize(("where", "name"), FIELDS)
def test_every_field_has_to_be_there_and_of_its_type(where: str, name: str) -> None:
    for value in (*OTHER_TYPES, ...):
        tree = json.loads(json.dumps(GOOD))
        holder = {"": tree, "records": tree["records"][0], "previous": tree["records"][0]["previous"]}[where]
        if type(value) is type(holder[name]) and value in (holder[name], []):
            continue  # that is what it has to be
        if name == "previous" and value is None:
            continue
        if value is ...:
            del holder[name]
        else:
            holder[name] = value
        with pytest.raises(OwnershipUnavailable):
            parse(json.dumps(tree).encode())


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "1e0", "10e-1", "01", "1.0", "true", "-1"])
def test_no_other_way_to_write_the_version_is_taken(value: str) -> None:
    text = json.dumps(GOOD).replace('"schemaVersion": 1', f'"schemaVersion": {value}', 1)
    with pytest.raises(OwnershipUnavailable):
        parse(text.encode())


def test_a_key_that_stands_twice_is_refused_at_every_depth() -> None:
    text = json.dumps(GOOD)
    for key in ('"schemaVersion": 1', '"phase": "pending"', f'"release": "{"5" * 64}"'):
        assert key in text
        with pytest.raises(OwnershipUnavailable):
            parse(text.replace(key, f"{key}, {key}", 1).encode())


@pytest.mark.parametrize("text", [b"", b"\xff", b"NaN", b"[" * 100_000, b'{"records": [], "records": []}', b"{}x"])
def test_what_is_not_strict_json_is_refused(text: bytes) -> None:
    with pytest.raises(OwnershipUnavailable):
        parse(text)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_otherwise(text: bytes) -> None:
    try:
        assert parse(text) == Book()
    except OwnershipUnavailable:
        return


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o666, 0o400, 0o700])
def test_a_file_with_another_mode_is_refused(ownership: Ownership, tmp_path: Path, mode: int) -> None:
    ownership.write(Book())
    (tmp_path / "ownership.json").chmod(mode)
    with pytest.raises(OwnershipUnavailable):
        ownership.read()


def test_what_is_no_plain_file_of_ours_is_refused(ownership: Ownership, tmp_path: Path) -> None:
    file = tmp_path / "ownership.json"
    ownership.write(Book())
    os.link(file, tmp_path / "second name")
    with pytest.raises(OwnershipUnavailable):
        ownership.read()
    file.unlink()
    file.symlink_to("second name")
    with pytest.raises(OwnershipUnavailable):
        ownership.read()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(OwnershipUnavailable):
        ownership.read()
    file.unlink()
    file.mkdir()
    with pytest.raises(OwnershipUnavailable):
        ownership.read()
    with pytest.raises(OwnershipUnavailable):
        ownership.write(Book())


@pytest.mark.parametrize(("size", "refused"), [(MAX_BYTES, False), (MAX_BYTES + 1, True)])
def test_a_file_is_read_up_to_its_bound(ownership: Ownership, tmp_path: Path, size: int, refused: bool) -> None:  # noqa: FBT001
    text = json.dumps(GOOD)
    ownership.write(Book())
    (tmp_path / "ownership.json").write_text(text + " " * (size - len(text)))
    if refused:
        with pytest.raises(OwnershipUnavailable):
            ownership.read()
    else:
        assert ownership.read() == Book().having(record())


def test_what_a_killed_writer_left_is_swept_and_nothing_else(ownership: Ownership, tmp_path: Path) -> None:
    ownership.write(Book())
    (tmp_path / ".ownership.json.abcd").write_text("half")
    (tmp_path / "other").write_text("")
    ownership.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {"ownership.json", "other"}
