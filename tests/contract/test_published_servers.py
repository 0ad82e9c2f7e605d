"""MCP servers of other authors, as published, granted to real sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
import pytest

from pi_session_mcp.bridge.results import FAILED
from pi_session_mcp.demo.model import Call, Echo
from pi_session_mcp.terms import pin
from tests.support.environment import ensure_installed
from tests.support.large import large_directory
from tests.support.published import install_published
from tests.support.real import PROFILE, RealWorld, run_turn
from tests.support.trees import survivors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.runtime.locate import Runtime

pytestmark = pytest.mark.registry

EXAMPLE: Final = Path(__file__).parents[2] / "config.example.json"
SCOPE: Final = "@modelcontextprotocol"
PUBLISHED: Final = dict.fromkeys(("server-filesystem", "server-everything", "server-memory"), "2026.8.31")


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where npm has put the servers."""
    versions = {f"{SCOPE}/{name}": version for name, version in PUBLISHED.items()}
    with large_directory(tmp_path_factory, "servers") as directory:
        yield install_published(directory, versions) / SCOPE


def granted(runtime: Runtime, program: Path, *args: str, **tools: str) -> dict[str, Any]:
    grants = {alias: {"name": name, "readOnly": True} for alias, name in tools.items()}
    return {"command": str(runtime.node), "args": [str(program / "dist" / "index.js"), *args], "tools": grants}


def test_published_servers_are_listed_called_and_ended(runtime: Runtime, modules: Path, tmp_path: Path) -> None:
    with RealWorld(tmp_path / "world", runtime) as world:
        (world.workspace / "note.txt").write_text("from the workspace é")
        (world.directory / "outside.txt").write_text("canary")
        files = granted(
            runtime, modules / "server-filesystem", str(world.workspace), read="read_text_file", ls="list_directory"
        )
        everything = granted(
            runtime, modules / "server-everything", sum="get-sum", image="get-tiny-image", data="get-structured-content"
        )
        servers = {"files": files, "all": everything}
        profile = {"default": True, "permissionProfile": "read-only", **PROFILE, "mcpServers": servers}
        world.configure(executionProfiles={"granted": profile})
        child = world.serve()
        session = world.start_session(child, "granted")

        def told(tool: str, **arguments: object) -> str:
            world.model.on("call it", Call(tool, arguments), Echo())
            return str(run_turn(child, session, "call it")["assistantText"])

        assert told("mcp_files_read", path=str(world.workspace / "note.txt")) == "from the workspace é"
        assert "[FILE] note.txt" in told("mcp_files_ls", path=str(world.workspace))
        assert told("mcp_files_read", path=str(world.directory / "outside.txt")) == FAILED
        assert "5" in told("mcp_all_sum", a=2, b=3)
        assert "[Image left out: image/png, " in told("mcp_all_image")
        assert "temperature" in told("mcp_all_data", location="New York")

        below = psutil.Process(child.process.pid).children(recursive=True)
        assert child.call("pi_session_close", sessionId=session)["ok"]
        servers_left = [process for process in below if SCOPE in " ".join(_words(process))]
        assert servers_left == []
        child.close_stdin()
        assert child.wait() == 0
        assert survivors(below) == []


@pytest.mark.matrix  # it installs a hundred packages
def test_what_the_example_grants_and_pins_is_published_and_starts(
    runtime: Runtime, modules: Path, tmp_path: Path
) -> None:
    profiles = json.loads(EXAMPLE.read_text(encoding="utf-8"))["executionProfiles"]
    pins = [pin.parse(text) for profile in profiles.values() for text in profile.get("extensions", ())]
    with RealWorld(tmp_path / "world", runtime) as world:
        npm = world.agent_directory / "npm"
        npm.mkdir()
        install_published(npm, {one.name: one.version for one in pins})
        for profile in profiles.values():
            profile.update(PROFILE)
            for server in profile.get("mcpServers", {}).values():
                place = server["args"][0].partition(f"{SCOPE}/")[2]
                server.update(command=str(runtime.node), args=[str(modules / place)])
        world.configure(executionProfiles=profiles)
        child = world.serve(TEAM_MEMORY_FILE=str(tmp_path / "memory.jsonl"))

        assert pins
        assert all(world.start_session(child, profile) for profile in profiles)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
