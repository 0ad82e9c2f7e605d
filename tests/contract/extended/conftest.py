"""One server for the tests of a file, with a profile for each kind of session; a world of its own for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.demo.model import Say
from tests.contract.extended.asking import BAD_TREES, PLAIN
from tests.support.environment import ensure_installed
from tests.support.extensions import ExtensionWorld, install_package
from tests.support.shared_server import SharedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

PROFILES: dict[str, dict[str, Any]] = {
    "reader": {},
    "coder": {"permissionProfile": "coding"},
    "thinker": {"thinkingLevel": "high"},
    "plain": PLAIN,
    "unextended": {"extensions": []},
    **{name: {"extensions": [f"npm:{name}@1.0.0"]} for name in BAD_TREES},
}
"""Of the server that most tests share."""


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture
def world(tmp_path: Path, runtime: Runtime) -> Iterator[ExtensionWorld]:
    with ExtensionWorld(tmp_path / "world", runtime) as world:
        yield world


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, runtime: Runtime) -> Iterator[SharedServer]:
    with ExtensionWorld(tmp_path_factory.mktemp("shared") / "world", runtime) as world:
        world.profiles(PROFILES)
        world.model.on("hello", Say("from the model"))
        install_bad_trees(world)
        yield SharedServer(world)


@pytest.fixture
def shared(server: SharedServer) -> Iterator[SharedServer]:
    """The server that most tests share, without a session, and the extension as new."""
    server.renew()
    yield server
    server.clear()


def install_bad_trees(world: ExtensionWorld) -> None:
    """A package for each of `BAD_TREES` but the last."""
    agent = world.agent_directory
    install_package(agent, "other-version", "1.0.1")
    install_package(agent, "no-entries", entries=[])
    install_package(agent, "missing-entry", entries=["./missing.ts"])
    install_package(agent, "escaping", entries=["../outside.ts"])
    install_package(agent, "another-name", files={"package.json": '{"name": "x", "version": "1.0.0"}'})
    install_package(agent, "no-json", files={"package.json": "{"})
    install_package(world.workspace, "in-workspace")
    (agent / "npm/node_modules/in-workspace").symlink_to(world.workspace / "npm/node_modules/in-workspace")
