"""What a measured server lives in: a throw-away home, a workspace, a configuration, and a model on a loopback port."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.client import Failed
from pi_session_mcp.demo.model import PROVIDER, write_agent_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORKSPACE: Final = "workspace"
MAX_SESSIONS: Final = 256
"""The most that a configuration may allow."""
_MODEL: Final = "scripted-1"
_MODEL_WITHIN_S: Final = 10


@dataclass(frozen=True, slots=True)
class World:
    """Where servers are measured. Everything is below `directory`."""

    directory: Path
    environment: Mapping[str, str]


@contextmanager
def world() -> Iterator[World]:
    """A world until the block is left; then nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name, _model() as port:
        directory = Path(name)
        (directory / WORKSPACE).mkdir()
        write_agent_directory(directory / "agent", f"http://127.0.0.1:{port}/v1", models=(_MODEL,))
        configuration = directory / "configuration.json"
        configuration.write_text(json.dumps(_configuration(directory)), encoding="utf-8")
        yield World(directory, _environment(directory, configuration))


def _configuration(directory: Path) -> dict[str, object]:
    profile = {
        "default": True,
        "permissionProfile": "read-only",
        "provider": PROVIDER,
        "model": _MODEL,
        "thinkingLevel": "off",
    }
    return {
        "workspaces": {WORKSPACE: str(directory / WORKSPACE)},
        "piAgentDirectory": str(directory / "agent"),
        "executionProfiles": {"measured": profile},
        "limits": {"maxSessions": MAX_SESSIONS},
    }


def _environment(directory: Path, configuration: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "LANG": "C.UTF-8",
        "PI_SESSION_MCP_CONFIG": str(configuration),
    }


@contextmanager
def _model() -> Iterator[int]:
    program = Path(__file__).with_name("model.py")
    model = subprocess.Popen([sys.executable, "-I", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert model.stdin is not None
    assert model.stdout is not None
    try:
        if not select.select([model.stdout], [], [], _MODEL_WITHIN_S)[0]:
            raise Failed("the model did not start")
        yield int(os.read(model.stdout.fileno(), 16))
    finally:
        model.stdin.close()
        try:
            model.wait(_MODEL_WITHIN_S)
        except subprocess.TimeoutExpired:
            model.kill()
            model.wait()
        model.stdout.close()
