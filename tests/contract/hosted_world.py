"""`PiWorld` on real hosts: the real SDK in Node, and a scripted model on the loopback."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil

from pi_session_mcp.bridge.servers import ExternalServers
from pi_session_mcp.config.model import ExecutionProfile
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.demo.model import PROVIDER, Call, Say, ScriptedModel, Stall, write_agent_directory
from pi_session_mcp.extensions.resolve import Place
from pi_session_mcp.host.host_environment import host_environment
from pi_session_mcp.host.pool import HostPool
from pi_session_mcp.host.process import SCRIPT, Launch
from pi_session_mcp.sessions.hosted.creation import HostedSessions
from pi_session_mcp.sessions.ports import SessionSpec
from tests.support.model_steps import Fail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pi_session_mcp.demo.model import Step
    from pi_session_mcp.runtime.locate import Runtime
    from pi_session_mcp.sessions.ports import PiSession, PiSessions

LOCKED = "locked"
"""A provider for which there is no key."""


class HostedWorld:
    """See `PiWorld`."""

    def __init__(self, workspace: Path, pi: PiSessions, model: ScriptedModel) -> None:
        self._workspace = workspace
        self._pi = pi
        self._model = model
        self._scripts = 0

    @property
    def pi(self) -> PiSessions:
        return self._pi

    def spec(self) -> SessionSpec:
        profile = {
            "default": True,
            "permission_profile": "read-only",
            "provider": PROVIDER,
            "model": "scripted-1",
            "thinking_level": "off",
        }
        return SessionSpec("project", self._workspace, "reader", ExecutionProfile.model_validate(profile))

    def spec_of_unknown_provider(self) -> SessionSpec:
        return self._with(provider="nobody")

    def spec_of_unknown_model(self) -> SessionSpec:
        return self._with(model="nothing")

    def spec_without_credentials(self) -> SessionSpec:
        return self._with(provider=LOCKED)

    def answers(self, text: str) -> str:
        return self._script(Say(text))

    def calls_tool_then_answers(self, text: str) -> str:
        return self._script(Call("ls", {"path": "."}), Say(text))

    def stalls(self) -> str:
        return self._script(Stall())

    def fails(self) -> str:
        return self._script(Fail(400))

    async def kill_host(self, session: PiSession) -> None:
        keepers = psutil.Process().children()
        (host,) = (child for keeper in keepers for child in keeper.children() if child.cmdline()[-1:] == [str(SCRIPT)])
        host.kill()

    def _with(self, **changed: str) -> SessionSpec:
        spec = self.spec()
        return replace(spec, profile=spec.profile.model_copy(update=changed))

    def _script(self, *steps: Step) -> str:
        self._scripts += 1
        prompt = f"script {self._scripts}."
        self._model.on(prompt, *steps)
        return prompt


@asynccontextmanager
async def hosted_world(directory: Path, runtime: Runtime) -> AsyncIterator[HostedWorld]:
    """A world that is gone, with its processes, when the block is left."""
    workspace, agent = directory / "workspace", directory / "agent"
    workspace.mkdir()
    with ScriptedModel() as model:
        write_agent_directory(agent, model.base_url)
        _add_locked_provider(agent, model.base_url)
        environment = host_environment(os.environ, agent_directory=agent, tools=runtime.tools)
        launch = Launch(runtime.node, runtime.sdk_entry, runtime.sdk_bundle, runtime.compile_cache, environment)
        bounds = Deadlines(host_start_s=60.0, host_ping_s=60.0, host_idle_s=600.0)
        async with (
            HostPool(lambda: launch, bounds, lambda _: None, lambda *_: None) as pool,
            ExternalServers({}, Deadlines(mcp_startup_s=60.0, mcp_call_s=60.0)) as external,
        ):
            pi = HostedSessions(pool, Deadlines(), {}, lambda: Place(agent, ()), external, lambda _: None)
            yield HostedWorld(workspace, pi, model)


def _add_locked_provider(agent: Path, base_url: str) -> None:
    file = agent / "models.json"
    models = json.loads(file.read_text())
    models["providers"][LOCKED] = {**models["providers"][PROVIDER], "baseUrl": base_url}
    del models["providers"][LOCKED]["apiKey"]
    file.write_text(json.dumps(models))
