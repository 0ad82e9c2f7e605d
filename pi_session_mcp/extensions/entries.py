"""Finds the files of a package that Pi would load as extensions, by Pi's rules and by reading files only.

Pi (1.5.2 to 1.6.0) takes what `pi.extensions` lists: files, folders, patterns, and overrides of these. Without a list
it takes the folder `extensions`, or the index file of a package that has none of Pi's folders. A path that leads out of
the package is refused here, and so is a declared one that Pi would skip in silence.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.extensions import patterns
from pi_session_mcp.extensions.manifest import MANIFEST, read_manifest
from pi_session_mcp.extensions.outcomes import Condition, Unusable
from pi_session_mcp.platform.text import utf8_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_ENTRIES: Final = 256
MAX_VISITED: Final = 20_000
"""The most names that one package may make us look at."""
MAX_DEPTH: Final = 64
"""The most names in a path of the package. The cost of a path grows with their number."""

_RESOURCES: Final = ("extensions", "skills", "prompts", "themes")
_SUFFIXES: Final = (".ts", ".js")
_INDEX_OF_FOLDER: Final = ("index.ts", "index.js")
_INDEX_OF_PACKAGE: Final = tuple(f"index.{kind}" for kind in ("js", "mjs", "cjs", "ts", "tsx", "mts", "cts"))
"""The order in which Pi's loader tries them in a directory."""
_IGNORE_FILES: Final = (".gitignore", ".ignore", ".fdignore")
_MAX_IGNORE_BYTES: Final = 64 * 1024


def extension_files(manifest: Mapping[str, Any], directory: Path, named: Path) -> tuple[Path, ...]:
    """The real paths of the package's extensions, in Pi's order. `named` is the package's directory as Pi writes it.

    Raises `Unusable`, `OSError` or `ValueError`.
    """
    tree = _Tree(directory)
    declared = _declared(manifest)
    if declared is None:
        found = _conventional(tree)
    else:
        sources = [entry for entry in declared if not patterns.is_override(entry)]
        overrides = [entry for entry in declared if patterns.is_override(entry)]
        listed = dict.fromkeys(file for entry in sources for file in _expanded(entry, tree))
        found = patterns.apply_overrides(list(listed), overrides, str(named))
    files = tuple(dict.fromkeys(tree.entry(file) for file in found))
    if not files:
        raise Unusable(Condition.NO_EXTENSION)
    if len(files) > MAX_ENTRIES:
        raise Unusable(Condition.FORM_UNSUPPORTED)
    return files


def _declared(manifest: Mapping[str, Any]) -> list[str] | None:
    """What the manifest lists, or `None` when Pi goes by the names of folders."""
    section = manifest.get("pi")
    if not isinstance(section, dict):
        return None
    if "extensions" in section:
        listed = section["extensions"]
        if not _is_list_of_texts(listed):
            raise Unusable(Condition.BROKEN)  # Pi would ignore it
        return list(listed)
    return [] if any(_is_list_of_texts(section.get(name)) for name in _RESOURCES) else None


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


class _Tree:
    """The files of a package, by paths relative to its real directory. No path leads out of it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._visited = 0

    def kind(self, path: str) -> int | None:
        """The type of what exists there, after links, or `None`. Raises `Unusable` for a link out of the package."""
        try:
            seen = (self._directory / path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        self._real(path)
        return stat.S_IFMT(seen.st_mode)

    def is_file(self, path: str) -> bool:
        return self.kind(path) == stat.S_IFREG

    def is_directory(self, path: str) -> bool:
        return self.kind(path) == stat.S_IFDIR

    def is_link(self, path: str) -> bool:
        return (self._directory / path).is_symlink()

    def names(self, path: str) -> list[str]:
        """The names in a directory, in the order in which Node lists them."""
        names = os.listdir(self._directory / path)
        self._visited += len(names)
        if self._visited > MAX_VISITED:
            raise Unusable(Condition.FORM_UNSUPPORTED)
        return sorted(names, key=os.fsencode)

    def listed(self, path: str) -> list[str]:
        """What the manifest of a folder in the package lists. A manifest that is not valid lists nothing."""
        if self.kind(_join(path, MANIFEST)) is None:
            return []
        try:
            manifest, _ = read_manifest(self._directory / path)
        except (ValueError, RecursionError):
            return []
        section = manifest.get("pi")
        listed = section.get("extensions") if isinstance(section, dict) else None
        return listed if _is_list_of_texts(listed) and listed is not None else []

    def text(self, path: str) -> str:
        """The text of a file, or "" when it does not exist."""
        if self.kind(path) is None:
            return ""
        with (self._directory / path).open("rb") as file:
            return file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace")

    def entry(self, path: str) -> Path:
        """The real path of a file that Pi is to load."""
        real = self._real(path)
        if not real.is_file() or not os.access(real, os.R_OK):
            raise Unusable(Condition.BROKEN if not real.is_dir() else Condition.FORM_UNSUPPORTED)
        if utf8_text(real) is None:  # its path cannot be passed to Node
            raise Unusable(Condition.FORM_UNSUPPORTED)
        return real

    def _real(self, path: str) -> Path:
        if path.count("/") >= MAX_DEPTH:
            raise Unusable(Condition.FORM_UNSUPPORTED)
        real = Path(os.path.realpath(self._directory / path, strict=True))
        if not real.is_relative_to(self._directory):
            raise Unusable(Condition.FORM_UNSUPPORTED)
        return real


def _expanded(entry: str, tree: _Tree) -> list[str]:
    """The files that one entry of a list names. Raises `Unusable` for a path that does not exist."""
    if patterns.is_glob(entry):
        matching = _matching(patterns.glob_segments(entry), tree)
        named = [path for path in matching if tree.is_directory(path)] if entry.endswith("/") else matching
    else:
        named = ["/".join(patterns.segments_of(entry))]
        if tree.kind(named[0]) not in {stat.S_IFREG, stat.S_IFDIR}:
            raise Unusable(Condition.BROKEN)
    return [file for path in named for file in _files_at(path, tree)]


def _files_at(path: str, tree: _Tree) -> list[str]:
    kind = tree.kind(path)
    if kind == stat.S_IFREG:
        return [path]
    return _in_folder(path, tree) if kind == stat.S_IFDIR else []


def _in_folder(folder: str, tree: _Tree) -> list[str]:
    """The extensions in a folder: what its own manifest lists, its index file, or else every file and folder in it."""
    named = _named_by(folder, tree)
    if named:
        return named
    _refuse_ignore_rules(folder, tree)
    found: list[str] = []
    for name in tree.names(folder):
        path = _join(folder, name)
        if name.startswith(".") or name == "node_modules":
            continue
        if tree.is_directory(path):
            found.extend(_named_by(path, tree))
        elif name.endswith(_SUFFIXES) and tree.is_file(path):
            found.append(path)
    return found


def _named_by(folder: str, tree: _Tree) -> list[str]:
    """The existing files that a folder's manifest lists, or else its index file, if it has one."""
    listed = [_join(folder, "/".join(patterns.segments_of(entry))) for entry in tree.listed(folder)]
    found = [path for path in listed if tree.kind(path) is not None]
    return found or [path for name in _INDEX_OF_FOLDER if tree.kind(path := _join(folder, name)) is not None][:1]


def _refuse_ignore_rules(folder: str, tree: _Tree) -> None:
    """Refuse a folder with such a file: Pi leaves out what it says, by rules that we do not know."""
    for name in _IGNORE_FILES:
        lines = tree.text(_join(folder, name)).splitlines()
        if any(line.strip() and not line.strip().startswith("#") for line in lines):
            raise Unusable(Condition.FORM_UNSUPPORTED)


def _conventional(tree: _Tree) -> list[str]:
    if tree.is_directory("extensions"):
        return _in_folder("extensions", tree)
    if any(tree.kind(name) is not None for name in _RESOURCES):
        return []
    return [name for name in _INDEX_OF_PACKAGE if tree.is_file(name)][:1]


def _matching(segments: Sequence[str], tree: _Tree) -> list[str]:
    """The visible paths that a pattern matches, sorted as Pi sorts them."""
    found = dict.fromkeys(_match("", segments, tree))
    return sorted(found, key=lambda path: path.encode("utf-16-be", "surrogatepass"))


def _match(base: str, segments: Sequence[str], tree: _Tree, *, at_any_depth: bool = False) -> Iterator[str]:
    head, rest = segments[0], segments[1:]
    if head == patterns.ANY_DEPTH:
        yield from _match_any_depth(base, rest, tree)
        return
    if patterns.is_glob(head):
        paths = [_join(base, name) for name in _visible(base, tree) if patterns.matches_name(head, name)]
    else:
        paths = [] if head.startswith(".") else [_join(base, head)]
    # For Pi `a.ts/**` means the file `a.ts`, but `*.ts/**` and `**/a.ts/**` do not.
    is_file_enough = set(rest) == {patterns.ANY_DEPTH} and not patterns.is_glob(head) and not at_any_depth
    for path in paths:
        if rest and tree.is_directory(path):
            yield from _match(path, rest, tree)
        elif (not rest or is_file_enough) and tree.kind(path) is not None:
            yield path


def _match_any_depth(base: str, rest: Sequence[str], tree: _Tree) -> Iterator[str]:
    """The files at `base` and below it. Links to directories are not followed."""
    if rest:
        yield from _match(base, rest, tree, at_any_depth=True)
    else:
        yield base
    for name in _visible(base, tree):
        path = _join(base, name)
        if not tree.is_link(path) and tree.is_directory(path):
            yield from _match_any_depth(path, rest, tree)
        elif not rest:
            yield path


def _visible(path: str, tree: _Tree) -> list[str]:
    return [name for name in tree.names(path) if not name.startswith(".")]


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
