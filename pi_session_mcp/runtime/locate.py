"""Finds the Node and the Pi SDK that a server uses. Runs no process."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.platform.files import is_program, others_can_write, private_directory
from pi_session_mcp.platform.reading import read_regular
from pi_session_mcp.platform.text import utf8_text
from pi_session_mcp.runtime.overrides import Asked, untrusted_directories
from pi_session_mcp.runtime.problem import RuntimeCode, RuntimeProblem
from pi_session_mcp.runtime.programs import find_program
from pi_session_mcp.runtime.record import Installed, find_installed, sdk_directory, tools_directory, writable_place
from pi_session_mcp.runtime.versions import SDK_NAME, SDK_PIN, node_is_supported, release_text, sdk_is_tested

if TYPE_CHECKING:
    from collections.abc import Mapping

_MANIFEST_LIMIT_BYTES: Final = 1_048_576


class Source(StrEnum):
    """Where a part of the runtime comes from."""

    CONFIGURATION = "configuration"
    INSTALLED = "installed"
    PATH = "path"


@dataclass(frozen=True, slots=True)
class Node:
    """A Node program. `version` is the recorded one, or `None` when only running it would tell."""

    program: Path
    source: Source
    version: str | None


@dataclass(frozen=True, slots=True)
class Sdk:
    """A package directory of the Pi SDK with a tested version."""

    package: Path
    source: Source
    version: str

    @property
    def entry(self) -> Path:
        """The published entry, as in the package's `exports`."""
        return self.package / "dist" / "index.js"


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a host is started with. All paths are absolute.

    `tools` is the directory of the installed `rg`, which comes first on `PATH`. `compile_cache` is a directory that
    only we can read and write, or `None`. `sdk_bundle` is the SDK in one file with the same exports, which loads in
    half the time. It is used at the pinned version only, since the SDK does not publish it as an entry.
    """

    node: Path
    sdk_entry: Path
    tools: Path | None
    compile_cache: Path | None
    node_source: Source
    sdk_source: Source
    node_version: str | None
    sdk_version: str
    sdk_bundle: Path | None


def locate(asked: Asked, environ: Mapping[str, str], cwd: Path, *, prefix: Path | None = None) -> Runtime:
    """The runtime to use. For each part: the configured one, or that of `runtime install`, or one on `PATH`.

    The first of these that exists is taken. If it cannot be used, it is refused, and no later one is taken instead.
    `prefix` is the Python environment (`sys.prefix`). Raises `Refusal` with `pi_runtime_unavailable`.
    """
    try:
        installed = find_installed(environ, prefix)
        node = find_node(asked, environ, cwd, installed)
        sdk = find_sdk(asked, environ, cwd, installed)
        tools = find_tools(sdk, installed)
    except RuntimeProblem:
        raise Refusal(Code.PI_RUNTIME_UNAVAILABLE, stage=Stage.RUNTIME) from None
    return Runtime(
        node=node.program,
        sdk_entry=sdk.entry,
        tools=tools,
        compile_cache=_compile_cache(node, sdk, environ, prefix),
        node_source=node.source,
        sdk_source=sdk.source,
        node_version=node.version,
        sdk_version=sdk.version,
        sdk_bundle=bundle_of(sdk),
    )


def find_node(asked: Asked, environ: Mapping[str, str], cwd: Path, installed: Installed | None) -> Node:
    """The Node to use. Raises `RuntimeProblem`."""
    configured = asked.runtime.node
    if configured is not None:
        return _checked_node(Node(configured, Source.CONFIGURATION, None))
    if installed is not None:
        record = installed.record
        return _checked_node(Node(Path(record.node), Source.INSTALLED, record.node_version))
    found = find_program("node", environ, untrusted_directories(asked, cwd))
    if found is None:
        raise RuntimeProblem(RuntimeCode.NODE_MISSING)
    return Node(found, Source.PATH, None)


def find_sdk(asked: Asked, environ: Mapping[str, str], cwd: Path, installed: Installed | None) -> Sdk:
    """The Pi SDK to use. Raises `RuntimeProblem`."""
    configured = asked.runtime.sdk
    if configured is not None:
        return checked_sdk(configured, Source.CONFIGURATION)
    if installed is not None:
        return checked_sdk(sdk_directory(installed.directory), Source.INSTALLED)
    command = find_program("pi", environ, untrusted_directories(asked, cwd))
    if command is None:
        raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING)
    sdk = checked_sdk(_package_behind(command), Source.PATH)
    if others_can_write(sdk.entry):
        raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING)
    return sdk


def checked_sdk(package: Path, source: Source) -> Sdk:
    """`package` as a Pi SDK with a tested version. Raises `RuntimeProblem`."""
    name, version = _manifest(package)
    if not package.is_absolute() or name != SDK_NAME or version is None:
        raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING)
    if not sdk_is_tested(version):
        raise RuntimeProblem(RuntimeCode.PI_VERSION_UNSUPPORTED, found=release_text(version))
    sdk = Sdk(package, source, version)
    if not sdk.entry.is_file() or utf8_text(sdk.entry) is None:  # the path that Node gets would be that of another file
        raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING)
    return sdk


def _checked_node(node: Node) -> Node:
    if not node.program.is_absolute() or not is_program(node.program):
        raise RuntimeProblem(RuntimeCode.NODE_MISSING)
    if node.version is not None and not node_is_supported(node.version):
        raise RuntimeProblem(RuntimeCode.NODE_VERSION_UNSUPPORTED, found=node.version)
    return node


def _package_behind(command: Path) -> Path:
    """The Pi package of a command on `PATH`: the nearest package above its real file, if it is Pi's."""
    for directory in Path(os.path.realpath(command)).parents:
        name, _ = _manifest(directory)
        if name is not None:
            return directory
    raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING)


def _manifest(package: Path) -> tuple[str | None, str | None]:
    """Name and version in a package's manifest. `None` for one that is missing or no text."""
    path = package / "package.json"
    try:
        manifest = json.loads(read_regular(path, max_bytes=_MANIFEST_LIMIT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None, None
    if not isinstance(manifest, dict):
        return None, None
    name, version = manifest.get("name"), manifest.get("version")
    return name if isinstance(name, str) else None, version if isinstance(version, str) else None


def find_tools(sdk: Sdk, installed: Installed | None) -> Path | None:
    """The directory of the installed `rg`, or `None` when nothing is installed. Raises `RuntimeProblem`.

    An install of ours without `rg` is damaged, even if the machine has another one.
    """
    tools = None if installed is None else tools_directory(installed.directory)
    if tools is None and sdk.source is Source.INSTALLED:
        raise RuntimeProblem(RuntimeCode.PI_RUNTIME_MISSING)
    return tools


def bundle_of(sdk: Sdk) -> Path | None:
    """The SDK in one file; see `Runtime.sdk_bundle`."""
    bundle = sdk.package / "dist" / "bundle" / "index.js"
    return bundle if sdk.version == SDK_PIN and bundle.is_file() else None


def _compile_cache(node: Node, sdk: Sdk, environ: Mapping[str, str], prefix: Path | None) -> Path | None:
    """A private directory for this pair of versions, which is made if missing. `None` when that is impossible."""
    place = writable_place(environ, prefix)
    if place is None:
        return None
    directory = place.compile_caches / f"{sdk.version}-{_identity(node)}"
    if utf8_text(directory) is None:
        return None
    return directory if private_directory(directory, anchor=place.anchor) else None


def _identity(node: Node) -> str:
    """The recorded version, or else what tells this Node program from others without running it."""
    if node.version is not None:
        return node.version
    real = Path(os.path.realpath(node.program))
    seen = real.stat()
    told = f"{real}\0{seen.st_size}\0{seen.st_mtime_ns}"
    return "node-" + hashlib.sha256(os.fsencode(told)).hexdigest()[:16]
