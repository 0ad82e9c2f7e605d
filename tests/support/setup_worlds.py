"""A throw-away operator for setup: a home with stub clients and others' registrations, installations, and a driver."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import psutil

from tests.support.asked_process import AskedProcess
from tests.support.stub_client import StubHome, install_stub_clients
from tests.support.trees import WAIT_S

if TYPE_CHECKING:
    from pathlib import Path

UNRELATED: Final = {"type": "stdio", "command": "/usr/bin/other", "args": ["x"], "env": {"TOKEN": "CANARY-other"}}


class Driver(AskedProcess):
    """The driver's process; one run at a time."""

    def __init__(self, module: str = "tests.support.setup_driver") -> None:
        super().__init__(module)

    def end(self) -> dict[str, Any]:
        """The answer to what was begun."""
        answer = super().end()
        assert not answer.get("crashed"), "the run raised an exception"
        return answer


@dataclass(slots=True)
class Operator:
    """Somebody with a home of their own, whose every command goes through the driver."""

    root: Path
    driver: Driver
    target: str = "claude-code:user"
    installation: str = "first"
    request: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    stub: StubHome = field(init=False)

    def __post_init__(self) -> None:
        self.stub = install_stub_clients(self.root / "home", self.root / "programs")
        (self.root / "project").mkdir(exist_ok=True)
        (self.root / "config.json").write_text("{}")
        shutil.rmtree(self.root / "notes", ignore_errors=True)  # of the world that this one is a copy of
        (self.root / "notes").mkdir()
        for name in ("first", "second"):
            self.install(name)
        self.claude_file.write_text(json.dumps({"numStartups": 7, "mcpServers": {"other": UNRELATED}}))

    def install(self, name: str, content: str = "pass\n") -> None:
        """An installation at a path of its own, or new bytes in the one that is there."""
        directory = self.root / "installations" / name
        (directory / "bin").mkdir(parents=True, exist_ok=True)
        (directory / "package").mkdir(exist_ok=True)
        (directory / "package" / "code.py").write_text(content)
        command = directory / "bin" / "pi-session-mcp"
        command.write_text("#!/bin/sh\nexit 0\n")
        command.chmod(0o755)

    @property
    def claude_file(self) -> Path:
        """Where the stub of Claude Code keeps what is registered."""
        return self.root / "home" / ".claude.json"

    @property
    def state(self) -> Path:
        """Setup's own directory."""
        return self.root / "home" / ".local" / "state" / "pi-session-mcp" / "setup"

    @property
    def environ(self) -> dict[str, str]:
        """What a shell of theirs would have."""
        return {**self.stub.environ, "PI_SESSION_MCP_CONFIG": str(self.root / "config.json")}

    def asked(self, operation: str, **more: Any) -> dict[str, Any]:
        """A request to the driver."""
        self.runs += 1
        return {
            "operation": operation,
            "targets": [self.target],
            "environ": self.environ,
            "cwd": str(self.root / "project"),
            "installation": str(self.root / "installations" / self.installation),
            "notes": str(self.notes),
            **self.request,
            **more,
        }

    @property
    def notes(self) -> Path:
        """The steps of the latest run."""
        return self.root / "notes" / str(self.runs)

    def setup(self, operation: str, **more: Any) -> dict[str, Any]:
        """Run setup to its end, or until the request kills it."""
        self.driver.begin(self.asked(operation, **more))
        return self.driver.end()

    def code(self, operation: str, **more: Any) -> str:
        """The code of the only finding."""
        (finding,) = self.setup(operation, **more)["findings"]
        return str(finding["code"])

    def steps(self) -> list[str]:
        """The steps of the latest run, in order."""
        return [line.split()[0] for line in self.notes.read_text().splitlines()]

    def started(self) -> list[int]:
        """The processes of the latest run that were said to be running."""
        return [int(word) for line in self.notes.read_text().splitlines() for word in line.split()[1:]]

    def registered(self) -> Any:
        """What is registered under our name."""
        return json.loads(self.claude_file.read_text()).get("mcpServers", {}).get("pi-session-mcp")

    def is_registered_for(self, installation: str) -> bool:
        """Whether exactly our registration is there."""
        command = str(self.root / "installations" / installation / "bin" / "pi-session-mcp")
        entry = self.registered()
        expected = (command, ["serve"], {"PI_SESSION_MCP_CONFIG": str(self.root / "config.json")})
        return entry is not None and (entry["command"], entry["args"], entry["env"]) == expected

    def rest(self) -> Any:
        """The client's file without our registration."""
        document = json.loads(self.claude_file.read_text())
        document.get("mcpServers", {}).pop("pi-session-mcp", None)
        return document

    def records(self) -> list[dict[str, Any]]:
        """What is recorded."""
        try:
            text = (self.state / "ownership.json").read_text()
        except FileNotFoundError:
            return []
        records: list[dict[str, Any]] = json.loads(text)["records"]
        return records

    def fence_is_free(self) -> bool:
        """Whether nobody holds the fence now."""
        try:
            descriptor = os.open(self.state / "setup.lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True

    def running(self) -> list[psutil.Process]:
        """Every process that has this home, and every one that was said to be running."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and (
                    process.environ().get("HOME") == str(self.root / "home")
                ):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def until_fence_falls(self) -> None:
        """Wait for the fence, and see that nothing of the clients runs once it is free."""
        until = time.monotonic() + 3 * WAIT_S
        while not self.fence_is_free():
            assert time.monotonic() < until, "the fence never fell"
            time.sleep(0.01)
        assert self.running() == []


def fresh_copy(template: Path, root: Path) -> None:
    """Have `root` be as `template` was, with links and modes."""
    if root.exists():
        shutil.rmtree(root)
    shutil.copytree(template, root, symlinks=True)
