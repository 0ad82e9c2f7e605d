"""Pi extensions on disk: the fixture package, small ones made up on the spot, and what they note."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self

import psutil

from tests.process.client import SERVE, Child
from tests.support.real import RealWorld
from tests.support.trees import WAIT_S, is_alive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """The notes of that kind, once there are so many. Raises `TimeoutError`."""
        deadline = monotonic() + WAIT_S
        while len(found := self.notes(event)) < count:
            if monotonic() > deadline:
                raise TimeoutError(event)
            sleep(0.01)
        return found

    def go_on(self) -> None:
        """Let what waits go on."""
        (self.directory / "go").touch()

    def processes(self) -> list[psutil.Process]:
        """Those that have loaded it and those that it has started, as far as they are still there."""
        pids = [note["pid"] for note in self.notes("load")] + [note["daemon"] for note in self.notes("daemon")]
        return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]

    def counts(self) -> tuple[int, int]:
        """How often a session has started and shut down."""
        return len(self.notes("session_start")), len(self.notes("session_shutdown"))


class Recorded(Child):
    """A server of which every line of standard output is kept."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.frames: list[Any] = []
        super().__init__(*arguments, **keywords)

    def receive(self, within_s: float = WAIT_S) -> Any:
        frame = super().receive(within_s)
        self.frames.append(frame)
        return frame

    def diagnostics_of(self, event: str) -> list[dict[str, Any]]:
        """The diagnostics of one kind so far."""
        return [diagnostic for diagnostic in self.diagnostics if diagnostic["event"] == event]

    def wait_for_failure_of(self, profile: str) -> dict[str, Any]:
        """The first diagnostic of a failed start of this profile. Raises `TimeoutError`."""
        deadline = monotonic() + WAIT_S
        while monotonic() < deadline:
            for said in self.diagnostics_of("pi_session_creation_failed"):
                if said["profile"] == profile:
                    return said
            sleep(0.01)  # a line of stderr may come a little after the answer on stdout
        raise TimeoutError(profile)

    def hosts(self) -> list[psutil.Process]:
        """The Pi hosts that are alive, without their keepers."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in below if is_alive(process) and _is_host(process)]


class ExtensionWorld(RealWorld):
    """The real product, with profiles whose sessions have the fixture extension."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.profiles({"reader": {}, "coder": {"permissionProfile": "coding"}})
        return self

    def profiles(self, profiles: Mapping[str, Mapping[str, Any]], **more: Any) -> None:
        """Configure these profiles, the first as the default; what they leave out is the fixture extension's."""
        default = next(iter(profiles))
        said = {
            alias: {"permissionProfile": "read-only", **PROFILE, "default": alias == default, **content}
            for alias, content in profiles.items()
        }
        self.configure(executionProfiles=said, **more)

    def install(self, **behaviour: Any) -> Installed:
        """The fixture package, in Pi's agent directory."""
        return install_fixture(self.agent_directory, **behaviour)

    def serve(self, command: Sequence[str] = SERVE, **variables: str) -> Recorded:
        child = Recorded({**self.environment, **variables}, command, cwd=self.directory)
        self._open.enter_context(child)
        child.initialize()
        return child


def _is_host(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return words[-1:] != [] and words[-1].endswith("/host.mjs") and "-I" not in words
