"""One real host for the sessions of these tests; its scripted model and Pi's files are each test's own."""

from __future__ import annotations

import json
import shutil
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import ScriptedModel, write_agent_directory
from tests.contract.host.extensions import TOOL
from tests.support.raw_host import RawHost, installed_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.contract.host.extensions import Extension, Notes


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
        host.greet(bundled=True)
        yield host


@pytest.fixture
def agent_directory(shared_agent_directory: Path, model: ScriptedModel) -> Iterator[Path]:
    """Pi's files of the shared host, as new."""
    write_agent_directory(shared_agent_directory, model.base_url)
    yield shared_agent_directory
    for path in shared_agent_directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # a lock of Pi's, held by a session that is just ending
        else:
            path.unlink(missing_ok=True)


@pytest.fixture
def host(shared_host: RawHost, agent_directory: Path) -> RawHost:
    return shared_host


@pytest.fixture
def own_host(runtime: Runtime, model: ScriptedModel, tmp_path: Path) -> Iterator[RawHost]:
    """A host that the test may end."""
    write_agent_directory(tmp_path / "agent", model.base_url)
    with RawHost(runtime, tmp_path / "agent", tmp_path) as host:
        host.greet()
        yield host


@pytest.fixture
def extension(tmp_path: Path) -> Extension:
    """Writes an extension whose factory has this body, and which can `note` lines in a file."""
    notes = json.dumps(str(tmp_path / "notes"))

    def write(body: str, name: str = "extension.ts") -> Path:
        path = tmp_path / "packages" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            'import { appendFileSync } from "node:fs";\n'
            f'const note = (text: string) => appendFileSync({notes}, text + "\\n");\n'
            f"{TOOL}\nexport default async function (pi: any) {{\n{dedent(body)}\n}}\n"
        )
        return path

    return write


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return lambda: (tmp_path / "notes").read_text().splitlines() if (tmp_path / "notes").exists() else []
