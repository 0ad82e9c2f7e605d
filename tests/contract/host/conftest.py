"""One real host for the sessions of these tests; its scripted model and Pi's files are each test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import ScriptedModel, write_agent_directory
from tests.support.raw_host import RawHost, installed_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    return installed_runtime()


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


@pytest.fixture(scope="package")
def shared_agent_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agent")


@pytest.fixture(scope="package")
def shared_host(
    runtime: Runtime, shared_agent_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RawHost]:
    with RawHost(runtime, shared_agent_directory, tmp_path_factory.mktemp("home")) as host:
        host.greet()
        yield host


@pytest.fixture
def agent_directory(shared_agent_directory: Path, model: ScriptedModel) -> Iterator[Path]:
    """Pi's files of the shared host, as new."""
    write_agent_directory(shared_agent_directory, model.base_url)
    yield shared_agent_directory
    for path in shared_agent_directory.iterdir():
        path.unlink()


@pytest.fixture
def host(shared_host: RawHost, agent_directory: Path) -> RawHost:
    return shared_host
