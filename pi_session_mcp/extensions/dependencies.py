"""Finds the dependencies of an installed package where Node looks for them, by reading manifests only.

Pi installs a package with its dependencies. A dependency that is missing later harms a session only when it is
imported, and whether it is can be known only by running the package.
"""

from __future__ import annotations

import os
import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.extensions.manifest import MANIFEST, read_manifest
from pi_session_mcp.extensions.outcomes import Condition, Unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_PACKAGES: Final = 2_000
"""The most packages of one tree that are looked at."""

_NAME: Final = re.compile(r"(?:@[^/@\0.][^/\0]*/)?[^/@\0.][^/\0]*")
_MODULES: Final = "node_modules"
_OF_PI: Final = frozenset(
    {"typebox", "@sinclair/typebox"}
    | {
        f"{scope}/{name}"
        for scope in ("@earendil-works", "@mariozechner")
        for name in ("pi-ai", "pi-agent-core", "pi-coding-agent", "pi-tui")
    }
)
"""The packages that Pi itself gives to extensions (1.6.0, dist/core/extensions/loader.js). They are never missing."""


@dataclass(frozen=True, slots=True)
class _Package:
    directory: Path
    manifest: Mapping[str, Any]


def condition_of_dependencies(
    manifest: Mapping[str, Any], directory: Path, agent_directory: Path, workspaces: Iterable[Path]
) -> Condition | None:
    """What is wrong with the direct and indirect dependencies of a package, the worst first."""
    inside = Path(os.path.realpath(agent_directory))
    closed = [Path(os.path.realpath(workspace)) for workspace in workspaces]
    is_linked_out = not directory.is_relative_to(inside)
    found = set[Condition]()
    for dependency in _tree(_Package(directory, manifest)):
        if dependency is None:
            found.add(Condition.DEPENDENCY_MISSING)
        elif any(dependency.is_relative_to(workspace) for workspace in closed):
            return Condition.IN_WORKSPACE
        elif not is_linked_out and not dependency.is_relative_to(inside):
            found.add(Condition.DEPENDENCY_OUTSIDE)
    order = (Condition.DEPENDENCY_MISSING, Condition.DEPENDENCY_OUTSIDE)
    return next((one for one in order if one in found), None)


def _tree(package: _Package) -> Iterable[Path | None]:
    """The real directory of each package that this one needs, or `None` for a package that is missing."""
    waiting = deque([package])
    seen = {package.directory}
    while waiting:
        one = waiting.popleft()
        for name in _needed(one.manifest, is_top=one is package):
            directory = _find(name, one.directory)
            yield directory
            if directory is not None and directory not in seen and len(seen) < MAX_PACKAGES:
                seen.add(directory)
                waiting.append(_Package(directory, _manifest_of(directory)))


def _needed(manifest: Mapping[str, Any], *, is_top: bool) -> Iterable[str]:
    """The names of the packages that must exist. Pi installs no peers, so only those of the extension itself count."""
    needed = _names(manifest, "dependencies") - _names(manifest, "optionalDependencies")
    if is_top:
        needed |= {name for name in _names(manifest, "peerDependencies") if not _is_optional_peer(manifest, name)}
    return sorted(
        name
        for name in needed - _OF_PI
        if _NAME.fullmatch(name) and not name.startswith("@types/")  # packages of types are never imported at run time
    )


def _names(manifest: Mapping[str, Any], section: str) -> set[str]:
    said = manifest.get(section)
    return set(said) if isinstance(said, dict) else set()


def _is_optional_peer(manifest: Mapping[str, Any], name: str) -> bool:
    said = manifest.get("peerDependenciesMeta")
    of_peer = said.get(name) if isinstance(said, dict) else None
    return isinstance(of_peer, dict) and of_peer.get("optional") is True


def _find(name: str, directory: Path) -> Path | None:
    """Where Node finds a package that is imported from `directory`: there, or in a directory above."""
    above = str(directory)
    while True:
        if os.path.basename(above) != _MODULES:
            candidate = os.path.join(above, _MODULES, name)
            if any(os.path.exists(os.path.join(candidate, file)) for file in (MANIFEST, "index.js")):
                return Path(os.path.realpath(candidate))
        if above == (higher := os.path.dirname(above)):
            return None
        above = higher


def _manifest_of(directory: Path) -> Mapping[str, Any]:
    try:
        return read_manifest(directory)[0]
    except (Unusable, OSError, ValueError, RecursionError):
        return {}
