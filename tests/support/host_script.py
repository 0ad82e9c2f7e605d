"""Programs that use modules of the host as the host does, in a Node process of their own."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from pi_session_mcp.host.host_environment import host_environment
from pi_session_mcp.host.process import SCRIPT
from tests.support.raw_host import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

_BEGINNING = """
const { modules, sdkEntry, given } = JSON.parse(process.argv[1]);
const load = (name) => import(`${modules}/${name}.mjs`);
const sdk = await import(sdkEntry);
const told = (run) => Promise.resolve().then(run).catch((error) => `threw ${error.message}`);
const textOf = (result) => result.content?.[0].text ?? result;
"""


def run_in_node(
    runtime: Runtime, home: Path, body: str, given: Mapping[str, object] | None = None, *, path: str = ""
) -> Any:
    """What the program returns, as JSON, with `sdk`, `load`, `told`, `textOf` and `given` at hand.

    `path` comes before the directories of `PATH` in which programs are looked for.
    """
    agent_directory = home / "agent"
    agent_directory.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    environment = host_environment(environ, agent_directory=agent_directory, tools=runtime.tools)
    if path:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    arguments = {
        "modules": SCRIPT.parent.as_uri(),
        "sdkEntry": (runtime.sdk_bundle or runtime.sdk_entry).as_uri(),
        "given": given,
    }
    ending = f"const answer = await (async () => {{ {body} }})();\nconsole.log(JSON.stringify(answer));"
    argv = [str(runtime.node), "--input-type=module", "-e", _BEGINNING + ending, "--", json.dumps(arguments)]
    run = subprocess.run(argv, capture_output=True, timeout=WAIT_S, env=environment, cwd="/", check=False)
    assert run.returncode == 0, run.stderr.decode()
    return json.loads(run.stdout)
