"""What every process test gets: an environment in which a server starts, and servers that are reaped."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.process.client import SERVE, Child
from tests.support.setup_templates import Templates, WarmDriver, make_templates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Protocol

    from tests.support.setup_worlds import Driver

    class Start(Protocol):
        """Starts a server that the test's end reaps; keywords become variables."""

        def __call__(
            self, *, command: Sequence[str] = SERVE, popen: dict[str, Any] | None = None, **variables: str
        ) -> Child: ...


TRIVIAL = (sys.executable, str(Path(__file__).parent / "trivial_server.py"))

CONFIGURATION = {
    "workspaces": {"here": "workspace"},
    "executionProfiles": {
        "scripted": {
            "default": True,
            "permissionProfile": "read-only",
            "provider": "scripted",
            "model": "scripted-1",
            "thinkingLevel": "off",
        }
    },
}


def environment_below(directory: Path) -> dict[str, str]:
    """Variables of a client that knows a valid configuration and nothing else."""
    (directory / "workspace").mkdir()
    (directory / "home").mkdir()
    configuration = directory / "config.json"
    configuration.write_text(json.dumps(CONFIGURATION))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(directory / "home"),
        "PI_CODING_AGENT_DIR": str(directory / "pi"),
        "PI_SESSION_MCP_CONFIG": str(configuration),
    }


@pytest.fixture
def server_environment(tmp_path: Path) -> dict[str, str]:
    """Those variables, for one test."""
    return environment_below(tmp_path)


@pytest.fixture
def start(server_environment: dict[str, str]) -> Iterator[Start]:
    """Start servers: the real one, or with `command=TRIVIAL` the one for descriptors, frames and endings."""
    with ExitStack() as children:

        def start_one(
            *, command: Sequence[str] = SERVE, popen: dict[str, Any] | None = None, **variables: str
        ) -> Child:
            return children.enter_context(Child({**server_environment, **variables}, command, **(popen or {})))

        yield start_one


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """What runs setup, each time in a child of its own; started once for a file, since its imports are what it costs.

    Not for all files: others look whether a child of theirs is left.
    """
    with WarmDriver() as driver:
        yield driver


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Templates:
    """Worlds for setup to start from, made once for a file."""
    return make_templates(tmp_path_factory.mktemp("worlds"), driver)
