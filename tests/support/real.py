"""The whole product for one test: the real server, the real Pi SDK, and a scripted model, below one directory."""

from __future__ import annotations

import json
import os
import shlex
import signal
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from pi_session_mcp.demo.model import ScriptedModel, write_agent_directory
from tests.process.client import SERVE, Child

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

PROFILE = {"provider": "scripted", "model": "scripted-1", "thinkingLevel": "off"}

TRACER = """
import {{ appendFileSync }} from "node:fs";
const {{ AgentSession }} = await import({sdk});
const note = (word) => appendFileSync({trace}, word + "\\n");
const dispose = AgentSession.prototype.dispose;
AgentSession.prototype.dispose = function () {{ note("disposed"); return dispose.call(this); }};
process.on("exit", (code) => note(`exit ${{code}}`));
process.on("SIGUSR2", () => {{ note("stuck"); for (;;); }});
process.on("SIGWINCH", () => {{ gc(); note(`heap ${{process.memoryUsage().heapUsed}}`); }});
note(`pid ${{process.pid}}`);
"""
"""Loaded into a host before its script: notes what the host does by itself, can hold its loop and weigh its heap."""


class RealWorld:
    """A workspace, Pi's agent directory, a configuration and a model; `serve` starts servers that the end reaps."""

    def __init__(self, directory: Path, runtime: Runtime, *, traced: bool = False) -> None:
        self.directory = directory
        self.workspace = directory / "workspace"
        self.agent_directory = directory / "agent"
        self.temporary = directory / "tmp"
        self.trace = directory / "trace"
        self.configuration = directory / "config.json"
        self.model = ScriptedModel()
        self._runtime = runtime
        self._traced = traced
        self._open = ExitStack()

    def __enter__(self) -> Self:
        for path in (self.workspace, self.temporary, self.directory / "home"):
            path.mkdir(parents=True)
        self._open.enter_context(self.model)
        write_agent_directory(self.agent_directory, self.model.base_url)
        self.configure()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def configure(self, **more: Any) -> None:
        """Write the configuration: a read-only and a coding profile over the scripted model, and `more` at its top."""
        said: dict[str, Any] = {
            "workspaces": {"project": str(self.workspace)},
            "piAgentDirectory": str(self.agent_directory),
            "executionProfiles": {
                "reader": {"default": True, "permissionProfile": "read-only", **PROFILE},
                "coder": {"permissionProfile": "coding", **PROFILE},
            },
            **({"runtime": {"node": str(self._traced_node())}} if self._traced else {}),
            **more,
        }
        self.configuration.write_text(json.dumps(said))

    def _traced_node(self) -> Path:
        preload = self.directory / "tracer.mjs"
        preload.write_text(
            TRACER.format(
                sdk=json.dumps((self._runtime.sdk_bundle or self._runtime.sdk_entry).as_uri()),
                trace=json.dumps(str(self.trace)),
            )
        )
        program = self.directory / "traced-node"
        words = shlex.join([str(self._runtime.node), "--expose-gc", "--import", str(preload)])
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)
        return program

    @property
    def environment(self) -> dict[str, str]:
        """What a client passes on."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory / "home"),
            "TMPDIR": str(self.temporary),
            "PI_SESSION_MCP_CONFIG": str(self.configuration),
        }

    def serve(self, command: Sequence[str] = SERVE, **variables: str) -> Child:
        """A server after its handshake."""
        child = self.start_server(command, **variables)
        child.initialize()
        return child

    def start_server(self, command: Sequence[str] = SERVE, **variables: str) -> Child:
        """A server that nothing was said to yet."""
        return self._open.enter_context(Child({**self.environment, **variables}, command, cwd=self.directory))

    def start_session(self, child: Child, profile: str = "reader") -> str:
        """A session's id."""
        started = child.call("pi_session_start", workspace="project", executionProfile=profile)
        assert started["ok"], started
        return str(started["session"]["id"])

    def notes(self) -> list[str]:
        """What the traced hosts have noted so far."""
        return self.trace.read_text().splitlines() if self.trace.exists() else []

    def wait_for_note(self, beginning: str) -> str:
        """The next note that begins so; a test that waits for one in vain runs into its time limit."""
        while True:
            for note in self.notes():
                if note.startswith(beginning):
                    return note
            threading.Event().wait(0.01)

    def host_heap(self) -> int:
        """Bytes of live objects in the traced host, after a collection."""
        before = len(self.notes())
        os.kill(self.host_pid(), signal.SIGWINCH)
        while not (notes := [note for note in self.notes()[before:] if note.startswith("heap ")]):
            threading.Event().wait(0.01)
        return int(notes[0].removeprefix("heap "))

    def host_pid(self) -> int:
        """The traced host that was started last."""
        return int([line for line in self.notes() if line.startswith("pid ")][-1].removeprefix("pid "))


def run_turn(child: Child, session: str, prompt: str) -> dict[str, Any]:
    """A prompt's terminal turn."""
    answer = child.call("pi_session_prompt", sessionId=session, prompt=prompt, waitMs=50_000)
    assert answer["ok"], answer
    turn: dict[str, Any] = answer["turn"]
    return turn
