"""The lock file that ships: exact, complete, and bound to no registry."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pi_session_mcp.runtime.record import shipped_lock
from pi_session_mcp.runtime.versions import NODE_MINIMUM, SDK_NAME, SDK_PIN

MANIFEST: dict[str, Any] = json.loads(shipped_lock()["package.json"])
PACKAGES: dict[str, dict[str, Any]] = json.loads(shipped_lock()["package-lock.json"])["packages"]


def test_the_sdk_is_pinned_at_the_version_that_is_tested() -> None:
    assert MANIFEST["dependencies"] == {SDK_NAME: SDK_PIN, "@vscode/ripgrep": "1.18.0"}
    assert PACKAGES[""]["dependencies"] == MANIFEST["dependencies"]
    assert PACKAGES[f"node_modules/{SDK_NAME}"]["version"] == SDK_PIN


def test_every_package_has_an_exact_version_and_a_strong_hash_and_no_address() -> None:
    for path, package in PACKAGES.items():
        if path:
            assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", package["version"]), path
            assert package["integrity"].startswith("sha512-"), path
            assert "resolved" not in package, path
            assert "link" not in package, path


@pytest.mark.parametrize("platform", ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"])
def test_ripgrep_is_there_for_every_platform(platform: str) -> None:
    package = PACKAGES[f"node_modules/@vscode/ripgrep-{platform}"]

    assert (package["os"], package["cpu"]) == ([platform.split("-")[0]], [platform.split("-")[1]])


def test_the_minimum_of_node_is_what_the_sdk_asks_for() -> None:
    assert PACKAGES[f"node_modules/{SDK_NAME}"]["engines"]["node"] == ">=" + ".".join(map(str, NODE_MINIMUM))
