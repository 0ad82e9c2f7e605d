"""An empty Python environment in which a wheel finds just what it requires, by links to what the tests' own has.

Installing tens of thousands of files again takes a minute of processor time. `-m release` does it.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import venv
import zipfile
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable


def make_linked_environment(prefix: Path, wheel: Path, extra: str) -> Path:
    """The interpreter of an environment in `prefix` with everything that `wheel` and its `extra` require."""
    venv.create(prefix, with_pip=False, symlinks=True)
    (packages,) = prefix.glob("lib/python*/site-packages")
    found: dict[str, set[str]] = {}
    _collect(_requirements_of(wheel), {"", extra}, found)
    ours = Path(sysconfig.get_path("purelib"))
    for name in sorted(set().union(*found.values())):
        (packages / name).symlink_to(ours / name)
    return prefix / "bin" / "python"


def link_runtime(prefix: Path) -> None:
    """Have the runtime of the tests' own environment in this one, too, by a record of its own.

    A `runtime install` there records its own Node, which is gone with the environment.
    """
    share, there = (Path(one) / "share" / "pi-session-mcp" for one in (prefix, sys.prefix))
    share.mkdir(parents=True)
    (share / "runtime").symlink_to(there / "runtime")
    shutil.copy(there / "runtime.json", share)


def _requirements_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode()).get_all("Requires-Dist", [])


def _collect(requirements: Iterable[str], extras: set[str], found: dict[str, set[str]]) -> None:
    """Note for each required distribution what it has at the top of its site-packages."""
    for text in requirements:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
        if not wanted or name in found:
            continue
        one = distribution(name)
        tops = {file.parts[0] for file in one.files or ()}
        found[name] = {top for top in tops if top not in {"..", "__pycache__"}}
        _collect(one.requires or (), {"", *requirement.extras}, found)
