"""Where `runtime install` puts its files, and its record of what it installed."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pi_session_mcp.platform.files import can_make, others_can_write, write_durably
from pi_session_mcp.platform.paths import fixed_data_directory, home_directory
from pi_session_mcp.platform.reading import read_seen
from pi_session_mcp.runtime.problem import RuntimeCode, RuntimeProblem
from pi_session_mcp.runtime.versions import SDK_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

_RECORD_LIMIT_BYTES: Final = 65_536
LOCK_FILES: Final = ("package.json", "package-lock.json")

Version = Annotated[str, Field(pattern=r"^v?\d{1,6}\.\d{1,6}\.\d{1,6}$")]


class Record(BaseModel):
    """What `runtime install` recorded: the Node and the install to use."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    schema_version: Literal[1] = 1
    lock: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    node: Annotated[str, Field(pattern=r"^/[^\x00]+$", max_length=4096)]
    node_version: Version
    sdk_version: Version


@dataclass(frozen=True, slots=True)
class Place:
    """A directory for installs, the record of the install in use, and Node's compile caches.

    `anchor` is a directory above it: the Python environment or the home directory.
    """

    root: Path
    anchor: Path

    @property
    def record_file(self) -> Path:
        """The file that says which install is used. It is replaced as a whole."""
        return self.root / "runtime.json"

    @property
    def installs(self) -> Path:
        """The directory of installs, each named by the hash of its lock file, and of those under way."""
        return self.root / "runtime"

    @property
    def compile_caches(self) -> Path:
        """The directory of compile caches, one for each pair of versions."""
        return self.root / "compile-cache"

    @property
    def installers_lock(self) -> Path:
        """The lock that all running installs share. It is never removed."""
        return self.root / "install.lock"

    def install(self, lock: str) -> Path:
        """The install of one lock file."""
        return self.installs / lock


@dataclass(frozen=True, slots=True)
class Installed:
    """A record and the install that it names."""

    place: Place
    record: Record

    @property
    def directory(self) -> Path:
        """The directory that npm filled."""
        return self.place.install(self.record.lock)


def places(environ: Mapping[str, str], prefix: Path | None = None) -> tuple[Place, ...]:
    """The Python environment that we are installed in, then the place in the home directory, if there is one."""
    ours = prefix or Path(sys.prefix)
    environment = Place(ours / "share" / "pi-session-mcp", ours)
    home = home_directory(environ)
    return (environment,) if home is None else (environment, Place(fixed_data_directory(home), home))


def writable_place(environ: Mapping[str, str], prefix: Path | None = None) -> Place | None:
    """The first of `places` that we can write in now."""
    return next((place for place in places(environ, prefix) if can_make(place.root)), None)


def find_installed(environ: Mapping[str, str], prefix: Path | None = None) -> Installed | None:
    """The first recorded install, even where we could not write. Raises `RuntimeProblem` if its record is not sound."""
    owner = _owner(prefix or Path(sys.prefix))
    for place in places(environ, prefix):
        record = _read(place, trusted_owners=owner)
        if record is not None:
            return Installed(place, record)
    return None


def write_record(place: Place, record: Record) -> None:
    """Make `record` the record in use. Raises `OSError`."""
    content = record.model_dump_json(by_alias=True, indent=2) + "\n"
    # All may read it: one user installs a shared environment and others use it. It has no secret.
    write_durably(place.record_file, content.encode(), mode=0o644)


def shipped_lock() -> dict[str, bytes]:
    """The files for npm's clean install, by name."""
    folder = Path(__file__).with_name("lock")
    return {name: (folder / name).read_bytes() for name in LOCK_FILES}


def shipped_lock_hash() -> str:
    """The name of the install for this version of ours."""
    return hashlib.sha256(shipped_lock()["package-lock.json"]).hexdigest()


def sdk_directory(install: Path) -> Path:
    """The Pi SDK's package in an install."""
    return install / "node_modules" / SDK_NAME


def tools_directory(install: Path) -> Path | None:
    """The directory of the install's `rg` for this platform, or `None` when it has none.

    npm installs the package for Node's architecture, which may not be the machine's (Rosetta). So the directory is
    looked for and not computed.
    """
    packages = (install / "node_modules" / "@vscode").glob(f"ripgrep-{sys.platform}-*/bin")
    return next((directory for directory in sorted(packages) if os.access(directory / "rg", os.X_OK)), None)


def _owner(prefix: Path) -> frozenset[int]:
    """The owner of the environment: they wrote the code that runs now, so their record may be trusted, too."""
    try:
        return frozenset({prefix.stat().st_uid})
    except OSError:
        return frozenset()


def _read(place: Place, *, trusted_owners: frozenset[int]) -> Record | None:
    path = place.record_file
    try:
        content, _ = read_seen(path, max_bytes=_RECORD_LIMIT_BYTES, flags=os.O_NOFOLLOW)
        if others_can_write(path, trusted_owners=trusted_owners, anchor=place.anchor):
            raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING)
        return Record.model_validate_json(content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError):
        raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING) from None
