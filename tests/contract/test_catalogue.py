"""The models that are read from the SDK's files are those that the SDK itself names."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from pi_session_mcp.runtime.known_models import known_models
from tests.support.environment import ensure_installed

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = """
const { ModelRuntime } = await import(process.argv[1]);
const runtime = await ModelRuntime.create({ refreshOnCreate: false });
const names = runtime.getProviders().map(({ id }) => [id, runtime.getModels(id).map((model) => model.id)]);
process.stdout.write(JSON.stringify(Object.fromEntries(names)));
"""


def test_in_a_fresh_home_the_files_name_exactly_the_models_that_the_sdk_names(tmp_path: Path) -> None:
    runtime = ensure_installed()
    agent_directory = tmp_path / "agent"
    environment = {"HOME": str(tmp_path), "PI_CODING_AGENT_DIR": str(agent_directory), "PATH": "/usr/bin:/bin"}
    named = subprocess.run(
        [str(runtime.node), "--input-type=module", "-e", _NAMES, str(runtime.sdk_entry)],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout

    known = known_models(agent_directory, runtime.sdk_entry.parent.parent)

    found = {name: {model.id for model in known.models(name)} for name in known.names}
    assert found == {name: set(models) for name, models in json.loads(named).items() if models}
    assert len(found) > 1
