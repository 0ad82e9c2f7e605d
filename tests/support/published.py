"""Packages of other authors, installed by npm from the registry."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Final

from pi_session_mcp.runtime.toolchain import find_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NPM_CACHE: Final = os.environ.get("NPM_CONFIG_CACHE") or os.path.expanduser("~/.npm")
"""That of whoever runs the tests, taken before a test hides it: what was fetched once is not fetched again."""
LIMIT_S: Final = 170
OPTIONS: Final = ("--omit=dev", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error")


def install_published(directory: Path, versions: Mapping[str, str], *options: str) -> Path:
    """Install these versions of these packages below `directory`; where npm has put them."""
    toolchain = find_toolchain(os.environ, ())
    assert toolchain is not None
    assert toolchain.npm is not None
    (directory / "package.json").write_text(json.dumps({"name": "published", "private": True}))
    packages = [f"{name}@{version}" for name, version in versions.items()]
    where = (f"--prefix={directory}", f"--cache={NPM_CACHE}")
    subprocess.run(
        [*toolchain.npm, "install", *packages, *OPTIONS, *options, *where],
        env={**os.environ, "HOME": str(directory), "PATH": f"{toolchain.node.parent}:{os.environ['PATH']}"},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=LIMIT_S,
    )
    return directory / "node_modules"
