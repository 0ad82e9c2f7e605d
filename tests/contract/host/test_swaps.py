"""A path that is swapped between the guard's look and the opening of the file."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.host.process import SCRIPT
from tests.support.raw_host import WAIT_S

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

OUTSIDE = "This session can only access files and directories inside its workspace."

# Stands in the place of Node's own `open`, which is the last instant at which a swap can come.
SWAPPING = """
import fsp from "node:fs/promises";
import { renameSync, symlinkSync, unlinkSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
const [workspace, outside, guardModule] = process.argv.slice(1);
const swap = (inside, target) => {
  renameSync(inside, `${workspace}/aside`);
  symlinkSync(target, inside);
};
const back = (inside) => {
  unlinkSync(inside);
  renameSync(`${workspace}/aside`, inside);
};
const open = fsp.open;
fsp.open = async (...args) => {
  %(before)s
  const handle = await open(...args);
  %(after)s
  return handle;
};
syncBuiltinESMExports();
const { Guard } = await import(guardModule);
const guard = new Guard(workspace);
const result = await (%(use)s).then((value) => `got ${value ?? ""}`, () => guard.refusal?.message ?? "failed");
console.log(JSON.stringify(result));
"""
DIRECTORY = {"before": "swap(`${workspace}/directory`, outside)", "after": ""}
DIRECTORY_AND_BACK = {**DIRECTORY, "after": "back(`${workspace}/directory`)"}
FILE = {"before": "swap(`${workspace}/directory/file`, `${outside}/file`)", "after": ""}
NOTHING = {"before": "", "after": ""}
READ = "guard.readWhole(`${workspace}/directory/file`)"
WRITE = "guard.write(`${workspace}/directory/file`, 'overwritten')"


def outcome(runtime: Runtime, tmp_path: Path, swap: dict[str, str], use: str) -> str:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for directory, content in ((workspace / "directory", "inside"), (outside, "canary")):
        directory.mkdir(parents=True)
        (directory / "file").write_text(content)
    script = SWAPPING % {**swap, "use": use}
    argv = [str(runtime.node), "--input-type=module", "-e", script, "--", str(workspace), str(outside)]
    run = subprocess.run([*argv, str(SCRIPT.with_name("guard.mjs"))], capture_output=True, check=True, timeout=WAIT_S)
    assert (outside / "file").read_text() == "canary"
    return str(json.loads(run.stdout))


@pytest.mark.parametrize(("use", "result"), [(READ, "got inside"), (WRITE, "got ")])
def test_without_a_swap_the_file_is_reached(runtime: Runtime, tmp_path: Path, use: str, result: str) -> None:
    assert outcome(runtime, tmp_path, NOTHING, use) == result


@pytest.mark.parametrize("use", [READ, WRITE])
@pytest.mark.parametrize("swap", [DIRECTORY, DIRECTORY_AND_BACK], ids=["there", "there and back"])
def test_a_directory_that_became_a_link_out_is_seen(
    runtime: Runtime, tmp_path: Path, swap: dict[str, str], use: str
) -> None:
    assert outcome(runtime, tmp_path, swap, use) == OUTSIDE


@pytest.mark.parametrize("use", [READ, WRITE])
def test_a_file_that_became_a_link_is_not_followed(runtime: Runtime, tmp_path: Path, use: str) -> None:
    assert outcome(runtime, tmp_path, FILE, use) == "failed"
