"""The records of what we have registered: only that is ever changed or removed.

A small file with hashes and names, without paths or values. It is read as a whole or refused, and never repaired: a
record that cannot be read proves nothing, so the operator has to decide.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from pi_session_mcp.platform.files import sync_directory, write_durably
from pi_session_mcp.platform.reading import read_seen
from pi_session_mcp.setup.targets import ALL_TARGETS, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE: Final = "ownership.json"
MAX_BYTES: Final = 65_536
MAX_RECORDS: Final = 128

_MODE: Final = 0o600
_NAMES: Final = {str(target): target for target in ALL_TARGETS}

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", max_length=64)]
ReleaseHash = Annotated[str, Field(pattern=r"^(editable:)?[0-9a-f]{64}$", max_length=73)]
TransactionId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]


class OwnershipUnavailable(Exception):  # noqa: N818 - an expected answer of the world
    """The records are damaged, open to others, too many, or cannot be read or written."""


class _Strict(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Previous(_Strict):
    """What was registered before a rebind."""

    registration: Hash
    release: ReleaseHash


class Record(_Strict):
    """One registration of ours. `pending` means that its transaction may not have ended."""

    target: str
    place: Hash
    registration: Hash
    release: ReleaseHash
    previous: Previous | None
    phase: Literal["pending", "owned"]
    transaction_id: TransactionId

    @field_validator("target")
    @classmethod
    def _known(cls, text: str) -> str:
        if text not in _NAMES:
            raise ValueError("no target")
        return text

    @property
    def is_pending(self) -> bool:
        """Whether its transaction may not have ended."""
        return self.phase == "pending"

    def covers(self, registration: str | None) -> bool:
        """Whether a live registration is the one of this record, or the one that it was to replace."""
        return registration is not None and registration in self.registrations

    @property
    def registrations(self) -> frozenset[str]:
        """The fingerprints that this record proves to be ours."""
        replaced = {self.previous.registration} if self.is_pending and self.previous is not None else set()
        return frozenset({self.registration, *replaced})


class Book(_Strict):
    """All records, at most one for a target at a place."""

    schema_version: Literal[1] = 1
    records: Annotated[tuple[Record, ...], Field(max_length=MAX_RECORDS, strict=False)] = ()

    @field_validator("records")
    @classmethod
    def _each_once(cls, records: tuple[Record, ...]) -> tuple[Record, ...]:
        if len({(record.target, record.place) for record in records}) != len(records):
            raise ValueError("twice")
        return records

    def find(self, target: Target, place: str) -> Record | None:
        """The record of this registration."""
        return next((one for one in self.records if (one.target, one.place) == (str(target), place)), None)

    def without(self, target: Target, place: str) -> Book:
        """The same records without that one."""
        kept = tuple(one for one in self.records if (one.target, one.place) != (str(target), place))
        return Book(records=kept)

    def having(self, record: Record) -> Book:
        """The same records with `record` in place of an earlier one. Raises `OwnershipUnavailable` when it is full."""
        others = self.without(_NAMES[record.target], record.place)
        if len(others.records) >= MAX_RECORDS:
            raise OwnershipUnavailable
        return Book(records=(*others.records, record))

    def pending_targets(self) -> tuple[Target, ...]:
        """The targets with a transaction that may not have ended, each once."""
        return tuple(dict.fromkeys(_NAMES[one.target] for one in self.records if one.is_pending))


class Ownership:
    """The file of records, in a directory that is ours. Only the holder of the fence writes it."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / FILE

    def read(self) -> Book:
        """The records, or none when there is no file. Raises `OwnershipUnavailable`."""
        try:
            content = _read_own_file(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return Book()
        except OSError:
            raise OwnershipUnavailable from None
        return parse(content)

    def write(self, book: Book, staged: Callable[[], None] | None = None) -> None:
        """Replace the records durably. If this raises `OwnershipUnavailable`, they are as before."""
        content = (json.dumps(_members(book), indent=1) + "\n").encode("ascii")
        if len(content) > MAX_BYTES:
            raise OwnershipUnavailable
        try:
            write_durably(self._file, content, mode=_MODE, staged=staged)
        except OSError:
            raise OwnershipUnavailable from None

    def sweep(self) -> None:
        """Remove what a killed writer has left beside the file. Only the holder of the fence calls this.

        Raises `OwnershipUnavailable`.
        """
        directory = self._file.parent
        try:
            left = [name for name in os.listdir(directory) if name.startswith(f".{FILE}.")]
            for name in left:
                os.unlink(directory / name)
            if left:
                sync_directory(directory)
        except OSError:
            raise OwnershipUnavailable from None


def parse(content: bytes) -> Book:
    """The records that `content` says. Raises `OwnershipUnavailable` for anything that we would not have written."""
    try:
        tree = json.loads(content.decode("ascii"), object_pairs_hook=_each_key_once, parse_constant=_refuse)
        book = Book.model_validate(tree, by_alias=True, by_name=False)
    except (ValueError, RecursionError, ValidationError):
        raise OwnershipUnavailable from None
    book = Book(records=book.records)
    if json.dumps(tree, sort_keys=True) != json.dumps(_members(book), sort_keys=True):
        raise OwnershipUnavailable  # for example, the version is `true` or 1.0, which Python takes for equal
    return book


def _members(book: Book) -> dict[str, Any]:
    members: dict[str, Any] = book.model_dump(mode="json", by_alias=True)
    return members


def _read_own_file(path: Path) -> bytes:
    def is_ours(seen: os.stat_result) -> bool:
        return seen.st_uid == os.geteuid() and seen.st_nlink == 1 and stat.S_IMODE(seen.st_mode) == _MODE

    return read_seen(path, max_bytes=MAX_BYTES, flags=os.O_NOFOLLOW, is_fine=is_ours)[0]


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice")
    return members


def _refuse(_constant: str) -> Any:
    raise ValueError("no JSON")
