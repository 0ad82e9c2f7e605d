"""Pi extensions on disk: the fixture package, small ones made up on the spot, and what they note."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FIXTURE = Path(__file__).parents[1] / "fixtures" / "extension"
FIXTURE_NAME = "@pi-session-mcp/fixture-extension"
FIXTURE_VERSION = "1.2.3-rc.1"
FIXTURE_PIN = f"npm:{FIXTURE_NAME}@{FIXTURE_VERSION}"
PROFILE = {"provider": "fixture", "model": "fixture-1", "thinkingLevel": "off", "extensions": [FIXTURE_PIN]}


def package_directory(agent_directory: Path, name: str) -> Path:
    """Where Pi has a package."""
    return agent_directory / "npm" / "node_modules" / name


def install_fixture(agent_directory: Path, **behaviour: Any) -> Installed:
    """Copy the fixture package to where Pi would have installed it, and switch on what it should do."""
    directory = package_directory(agent_directory, FIXTURE_NAME)
    shutil.copytree(FIXTURE, directory)
    installed = Installed(directory)
    installed.behave(**behaviour)
    return installed


def install_package(
    agent_directory: Path,
    name: str = "ext",
    version: str = "1.0.0",
    *,
    entries: Any = ("./index.ts",),
    files: Mapping[str, str] | None = None,
    **manifest: Any,
) -> Path:
    """A package with this manifest; its entry does nothing unless `files` says otherwise."""
    directory = package_directory(agent_directory, name)
    said = {"name": name, "version": version, "pi": {"extensions": entries}, **manifest}
    for path, text in {
        "index.ts": "export default function () {}\n",
        "package.json": json.dumps(said),
        **(files or {}),
    }.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return directory


class Installed:
    """An installed fixture package."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def behave(self, **behaviour: Any) -> None:
        """What it does from now on, in processes that start later."""
        (self.directory / "behaviour.json").write_text(json.dumps(behaviour))

    def notes(self, event: str | None = None) -> list[dict[str, Any]]:
        """What it has noted so far, in all processes."""
        path = self.directory / "notes.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        said: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [one for one in said if event in {None, one["event"]}]

    def processes(self) -> list[int]:
        """The processes that have loaded it, and those that it has started and noted."""
        return [note["pid"] for note in self.notes("load")] + [note["daemon"] for note in self.notes("daemon")]
