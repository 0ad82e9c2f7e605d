"""This installation: where its command is, which files it has, and whether it will still be there tomorrow."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import stat
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pi_session_mcp
from pi_session_mcp.platform.files import is_program, others_can_write
from pi_session_mcp.platform.paths import is_below
from pi_session_mcp.platform.temporary import named_temporary_directory
from pi_session_mcp.platform.text import shown_text
from pi_session_mcp.setup.clients.base import can_be_registered
from pi_session_mcp.setup.registration import registration_of
from pi_session_mcp.setup.result import SetupCode, Stopped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME: Final = "pi-session-mcp"
EDITABLE: Final = "editable:"
"""Begins the hash of an installation whose files are somebody's working copy."""

_CACHE: Final = "__pycache__"
_CHUNK_BYTES: Final = 1024 * 1024
_VERSION_IN_PATH: Final = re.compile(r"v?\d+(?:\.\d+)+[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Installation:
    """`executable` is what clients start. `package` has our code. `entry_points` is text of the metadata."""

    executable: Path
    package: Path
    version: str
    entry_points: tuple[str, ...]
    is_editable: bool

    def release(self) -> str:
        """SHA-256 of the version, the entry points, the executable and every file of the package except bytecode.

        Raises `Stopped` (`release_unavailable`) when a link or anything but a plain file is among them: its content
        could change without any of this changing.
        """
        try:
            digest = hashlib.sha256()
            for name, file in (("executable", self.executable.resolve(strict=True)), *_files(self.package)):
                with open(file, "rb") as content:
                    inner = hashlib.file_digest(content, "sha256").hexdigest()
                digest.update(f"{json.dumps(name)} {inner}\n".encode("ascii"))
        except (OSError, RecursionError):
            raise Stopped(SetupCode.RELEASE_UNAVAILABLE) from None
        digest.update(json.dumps([self.version, self.entry_points, self.is_editable]).encode("ascii"))
        return f"{EDITABLE if self.is_editable else ''}{digest.hexdigest()}"


def find_installation(environ: Mapping[str, str]) -> Installation:
    """The installation that this process runs from. Raises `Stopped` (`release_unavailable`)."""
    try:
        distribution = importlib.metadata.distribution(NAME)
        is_editable = _is_editable(distribution)
        package = Path(pi_session_mcp.__file__).parent
        points = tuple(sorted(f"{one.group} {one.name} = {one.value}" for one in distribution.entry_points))
        executable = _executable(distribution)
        belongs = is_editable or os.path.samefile(str(distribution.locate_file("pi_session_mcp")), package)
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError):
        raise Stopped(SetupCode.RELEASE_UNAVAILABLE) from None
    if executable is None or not belongs:
        raise Stopped(SetupCode.RELEASE_UNAVAILABLE)
    executable = _without_version(executable, environ)
    if not can_be_registered(registration_of(shown_text(executable), "/")):
        raise Stopped(SetupCode.RELEASE_UNAVAILABLE)
    return Installation(executable, package, distribution.version, points, is_editable)


def require_lasting(installation: Installation, environ: Mapping[str, str]) -> None:
    """Raise `Stopped` (`installation_ephemeral`) if the installation will be tidied away sooner or later."""
    vanishing = tuple(_vanishing_directories(environ))
    if any(is_below(path, one) for path in (installation.executable, installation.package) for one in vanishing):
        raise Stopped(SetupCode.INSTALLATION_EPHEMERAL)


def _files(directory: Path, inside: str = "") -> Iterator[tuple[str, Path]]:
    """Every file below `directory`, in the order of names. Raises `OSError` if something there is no file."""
    for entry in sorted(os.scandir(directory), key=lambda entry: os.fsencode(entry.name)):
        name = f"{inside}{entry.name}"
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            if entry.name != _CACHE:
                yield from _files(Path(entry.path), f"{name}/")
        elif stat.S_ISREG(mode):
            yield name, Path(entry.path)
        else:
            raise OSError(name)


def _is_editable(distribution: importlib.metadata.Distribution) -> bool:
    said = json.loads(distribution.read_text("direct_url.json") or "{}")
    information = said.get("dir_info") if isinstance(said, dict) else None
    return isinstance(information, dict) and information.get("editable") is True


def _executable(distribution: importlib.metadata.Distribution) -> Path | None:
    """The command that the installer made, by its own list of files, or else where the interpreter has commands."""
    listed = [file for file in distribution.files or () if file.name == NAME and file.parent.name == "bin"]
    places = [Path(str(distribution.locate_file(file))) for file in listed]
    for place in (*places, Path(sysconfig.get_path("scripts"), NAME)):
        path = Path(os.path.normpath(place))
        if path.is_absolute() and is_program(path):
            return path
    return None


def _without_version(executable: Path, environ: Mapping[str, str]) -> Path:
    """A link on `PATH` to the very same file, if the file's own directory is named after a version.

    Homebrew and others make a directory for each version and remove the old one. The link stays.
    """
    if not _is_versioned(executable):
        return executable
    for entry in environ.get("PATH", "").split(os.pathsep):
        link = Path(entry, NAME)
        try:
            same = os.path.isabs(entry) and link.is_symlink() and os.path.samefile(link, executable)
        except OSError:
            continue
        if same and not _is_versioned(link) and not others_can_write(link):
            return link
    return executable


def _is_versioned(path: Path) -> bool:
    return any(_VERSION_IN_PATH.fullmatch(part) for part in path.parent.parts)


def _vanishing_directories(environ: Mapping[str, str]) -> Iterator[Path]:
    """Temporary directories of the system, and where uv and pipx keep the environments of a single run."""
    home = environ.get("HOME", "")
    caches = [environ.get("XDG_CACHE_HOME", ""), f"{home}/.cache", f"{home}/Library/Caches"]
    named = [
        *(
            named_temporary_directory(environ),
            environ.get("TMPDIR", ""),
            "/tmp",
            "/var/tmp",
            "/dev/shm",
            "/private/var/folders",
        ),
        environ.get("UV_CACHE_DIR", ""),
        *(f"{cache}/{tool}" for cache in caches if cache for tool in ("uv", "pipx")),
        *(f"{environ[name]}/.cache" for name in ("PIPX_HOME",) if environ.get(name)),
        *(f"{home}/{place}/.cache" for place in (".local/pipx", ".local/share/pipx")),
        f"{home}/Library/Application Support/pipx/.cache",
    ]
    yield from (Path(path) for path in named if os.path.isabs(path))
