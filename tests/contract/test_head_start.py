"""A host that is started before its pool: it is greeted, taken over, used first, and ended like any other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pi_session_mcp.config.load import load
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.demo.model import write_agent_directory
from pi_session_mcp.host.pool import HostPool
from pi_session_mcp.host.protocol import Empty, Ping
from pi_session_mcp.server.head_start import head_start
from pi_session_mcp.server.wire.protocol import Call
from tests.support.environment import ensure_installed
from tests.support.real import PROFILE

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.host.host import Host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("installed")]

BOUNDS = Deadlines(host_start_s=60.0, host_ping_s=60.0, host_idle_s=600.0)


@pytest.fixture(scope="module")
def installed() -> None:
    """The Pi SDK is there."""
    ensure_installed()


def configured(directory: Path, **more: Any) -> Configuration:
    write_agent_directory(directory / "agent", "http://127.0.0.1:9/v1")
    (directory / "workspace").mkdir()
    said = {
        "workspaces": {"project": str(directory / "workspace")},
        "piAgentDirectory": str(directory / "agent"),
        "executionProfiles": {
            "plain": {"default": True, "permissionProfile": "read-only", **PROFILE},
            "extended": {"permissionProfile": "coding", **PROFILE, "extensions": ["npm:some-package@1.0.0"]},
        },
        **more,
    }
    (directory / "config.json").write_text(json.dumps(said))
    return load(directory / "config.json")


def asking(profile: str) -> list[Call]:
    return [Call(1, "pi_session_start", {"workspace": "project", "executionProfile": profile}, None)]


@pytest.mark.parametrize("profile", ["plain", "extended"])
async def test_the_first_session_gets_the_host_that_was_started_early(tmp_path: Path, profile: str) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    early = head_start(asking(profile), configured(tmp_path))
    assert early is not None
    reported: list[object] = []

    async with HostPool(_unused, BOUNDS, reported.append, lambda *_: None, early) as pool:
        host: Host = await (pool.own() if profile == "extended" else pool.shared())
        await early.process.child.started()
        assert psutil.Process(early.process.child.pid).is_running()
        await host.client.request(Ping(), Empty)
        host.vacate()

    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before
    assert reported == []


async def test_a_host_that_nobody_used_ends_with_its_pool(tmp_path: Path) -> None:
    early = head_start(asking("plain"), configured(tmp_path))
    assert early is not None

    async with HostPool(_unused, BOUNDS, lambda _: None, lambda *_: None, early):
        pass

    assert not psutil.pid_exists(early.process.child.pid)


def test_where_no_host_can_be_started_the_session_says_why(tmp_path: Path) -> None:
    nowhere = {"node": str(tmp_path / "no-node"), "sdk": str(tmp_path / "no-sdk")}

    assert head_start(asking("plain"), configured(tmp_path, runtime=nowhere)) is None


def _unused() -> Any:
    raise AssertionError
