"""Real external MCP servers for tests: the fixture with its switches, and what it has noted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import psutil

from pi_session_mcp.config.model import Grant, McpServer
from pi_session_mcp.demo.model import Call, Echo
from tests.support.real import PROFILE, RealWorld, run_turn
from tests.support.trees import WAIT_S, is_alive, survivors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.runtime.locate import Runtime
    from tests.process.client import Child

PROGRAM = Path(__file__).parents[1] / "fixtures" / "mcp_server.py"


class Fixture:
    """One configured fixture server: where it notes, and how it is started."""

    def __init__(self, notes: Path, **switches: Any) -> None:
        self._notes = notes
        self._switches = notes.with_name(f"{notes.name}.switches")
        self._switches.write_text(json.dumps({"notes": str(notes), **switches}))

    @property
    def argv(self) -> tuple[str, ...]:
        """How it is started. Isolated, so that nothing of the tests' own environment decides what it does."""
        return sys.executable, "-I", str(PROGRAM), str(self._switches)

    def server(self, *tools: str, env_from: Mapping[str, str] | None = None) -> McpServer:
        """Its configuration, with these tools granted under their own names."""
        grants = {tool: Grant(name=tool, read_only=True) for tool in tools or ("echo",)}
        return McpServer(command=self.argv[0], args=self.argv[1:], env_from=env_from or {}, tools=grants)

    def configured(self, *tools: str, **more: Any) -> dict[str, Any]:
        """The same as a part of a configuration file."""
        grants = {tool: {"name": tool, "readOnly": True} for tool in tools or ("echo",)}
        return {"command": self.argv[0], "args": list(self.argv[1:]), "tools": grants, **more}

    def notes(self, event: str | None = None) -> list[dict[str, Any]]:
        """What its processes have noted so far."""
        lines = self._notes.read_text().splitlines() if self._notes.exists() else []
        said: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [one for one in said if event in {None, one["event"]}]

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """The notes of that kind, once there are so many; not for a test that runs an event loop."""
        deadline = monotonic() + WAIT_S
        while len(found := self.notes(event)) < count:
            if monotonic() > deadline:
                raise TimeoutError(event)
            sleep(0.01)
        return found

    @property
    def pids(self) -> list[int]:
        """Every process of it, and every one that these have started."""
        return [note["pid"] for note in self.notes("start")] + [note["child"] for note in self.notes("child")]

    def alive(self) -> list[psutil.Process]:
        """Those of them that still run."""
        return [one for pid in self.pids if psutil.pid_exists(pid) and is_alive(one := psutil.Process(pid))]


class BridgeWorld(RealWorld):
    """The real product; each profile's sessions have the external servers that a test configures."""

    def __init__(self, directory: Path, runtime: Runtime) -> None:
        super().__init__(directory, runtime)
        self.fixtures: list[Fixture] = []

    def fixture(self, **switches: Any) -> Fixture:
        fixture = Fixture(self.directory / f"notes-{len(self.fixtures)}", **switches)
        self.fixtures.append(fixture)
        return fixture

    def profiles(self, **servers: Mapping[str, Any]) -> None:
        """A profile for each name, with these servers; the default one has none."""
        plain = {"plain": {"default": True, "permissionProfile": "read-only", **PROFILE}}
        granted = {
            name: {"permissionProfile": "read-only", **PROFILE, "mcpServers": content}
            for name, content in servers.items()
        }
        self.configure(executionProfiles={**plain, **granted})

    def refusal(self, child: Child, profile: str) -> str:
        started = child.call("pi_session_start", workspace="project", executionProfile=profile)
        assert not started["ok"], started
        return str(started["error"]["code"])

    def tools_of_last_request(self) -> dict[str, dict[str, Any]]:
        return {tool["function"]["name"]: tool["function"] for tool in self.model.requests[-1]["tools"]}

    def left(self) -> list[str]:
        """What is still alive of the servers, within a while."""
        alive = [process for fixture in self.fixtures for process in fixture.alive()]
        return [str(process) for process in survivors(alive)]


def said(world: BridgeWorld, child: Child, session: str, tool: str, **arguments: object) -> str:
    """What the model is told when it calls a tool."""
    world.model.on("call it", Call(tool, arguments), Echo())
    turn = run_turn(child, session, "call it")
    assert turn["state"] == "completed", turn
    return str(turn["assistantText"])


def close(child: Child, session: str) -> None:
    assert child.call("pi_session_close", sessionId=session)["session"]["state"] == "closed"
