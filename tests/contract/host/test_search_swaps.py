"""Directories that are swapped for links while `grep` and `find` search.

Ripgrep goes by paths, and sees what is there at that time.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.host_script import run_in_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.runtime.locate import Runtime

OUTSIDE = "This session can only access files and directories inside its workspace."
CALL = """
const { FileCall } = await load("file_tools");
const { tool, cwd, parameters } = given;
const asked = { tool, cwd, root: cwd, parameters, autoResizeImages: true };
return told(() => new FileCall(sdk, asked, { signal: undefined }).result().then(textOf));
"""
needs_open_directories = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="needs paths that lead to open directories"
)
SEARCHES: list[tuple[str, dict[str, object]]] = [
    ("grep", {"pattern": "."}),
    ("grep", {"pattern": ".", "context": 3}),
    ("find", {"pattern": "**/*"}),
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    for name in ("file", "canary", "deep/canary"):
        (outside / name).write_text("canary\n")
    return outside


def ripgrep_that_does(tmp_path: Path, runtime: Runtime, before: str, after: str) -> Path:
    """A directory with an `rg` that does something right before it searches, and right after it.

    It goes through links, as ripgrep does when one takes the place of a directory that it has seen already.
    """
    real = shutil.which("rg", path=str(runtime.tools)) or shutil.which("rg")
    assert real is not None
    directory = tmp_path / "programs"
    directory.mkdir()
    # Only the one that goes over files: `find` has another for names.
    for_names = f'case " $* " in *" --null-data "*) exec {real} "$@";; esac'
    lines = ["#!/bin/sh", for_names, before, f'{real} --follow "$@"', "status=$?", after, "exit $status", ""]
    (directory / "rg").write_text("\n".join(lines))
    (directory / "rg").chmod(0o755)
    return directory


def swap(place: Path, target: Path) -> str:
    inside, outside = shlex.quote(str(place)), shlex.quote(str(target))
    return f"mv {inside} {inside}.aside; ln -s {outside} {inside}"


def back(place: Path) -> str:
    return f"rm {shlex.quote(str(place))}; mv {shlex.quote(str(place))}.aside {shlex.quote(str(place))}"


@pytest.fixture
def workspace(workspace: Path) -> Path:
    (workspace / "sub/deep").mkdir(parents=True)
    for name in ("file", "sub/file", "sub/own", "sub/deep/own"):
        (workspace / name).write_text("inside\n")
    return workspace


def asked(workspace: Path, tool: str, parameters: Mapping[str, object]) -> dict[str, object]:
    return {"tool": tool, "cwd": str(workspace), "parameters": parameters}


@pytest.mark.parametrize("returns", [False, True], ids=["there", "there and back"])
@pytest.mark.parametrize("path", [".", "sub", "sub/deep"])
@pytest.mark.parametrize(("tool", "given"), SEARCHES)
def test_a_directory_that_becomes_a_link_out_shows_nothing_of_there(
    runtime: Runtime,
    tmp_path: Path,
    workspace: Path,
    outside: Path,
    tool: str,
    given: dict[str, object],
    path: str,
    *,
    returns: bool,
) -> None:
    place = workspace / "sub"
    programs = ripgrep_that_does(tmp_path, runtime, swap(place, outside), back(place) if returns else "")
    parameters = {**given, "path": path}

    said = run_in_node(runtime, tmp_path, CALL, asked(workspace, tool, parameters), path=str(programs))

    assert "canary" not in said
    if path != "." and not returns:
        assert said == f"threw {OUTSIDE}"
    elif path == ".":
        assert "file" in said


SWAPPED_WHILE_STARTING = """
const processes = (await import("node:child_process")).default;
const { renameSync, symlinkSync, unlinkSync } = await import("node:fs");
const { syncBuiltinESMExports } = await import("node:module");
const place = `${given.cwd}/sub`;
const spawn = processes.spawn;
processes.spawn = (...call) => {
  renameSync(place, `${place}.aside`);
  symlinkSync(given.outside, place);
  const child = spawn(...call);
  unlinkSync(place);
  renameSync(`${place}.aside`, place);
  return child;
};
syncBuiltinESMExports();
"""


@needs_open_directories
@pytest.mark.parametrize(("tool", "given"), SEARCHES)
def test_a_search_begins_in_the_directory_that_was_looked_at(
    runtime: Runtime, tmp_path: Path, workspace: Path, outside: Path, tool: str, given: dict[str, object]
) -> None:
    parameters = {**given, "path": "sub"}
    known = {**asked(workspace, tool, parameters), "outside": str(outside)}

    said = run_in_node(runtime, tmp_path, SWAPPED_WHILE_STARTING + CALL, known)

    assert "canary" not in said
    assert "deep/own" in said


SWAPPED_WHILE_LISTED = """
const files = (await import("node:fs/promises")).default;
const { renameSync, symlinkSync, unlinkSync } = await import("node:fs");
const { syncBuiltinESMExports } = await import("node:module");
const place = `${given.cwd}/sub`;
const opendir = files.opendir;
files.opendir = async (...call) => {
  renameSync(place, `${place}.aside`);
  symlinkSync(given.outside, place);
  const opened = await opendir(...call);
  if (given.returns) {
    unlinkSync(place);
    renameSync(`${place}.aside`, place);
  }
  return opened;
};
syncBuiltinESMExports();
"""


@needs_open_directories
@pytest.mark.parametrize(("returns", "told"), [(True, "deep/\nfile\nown"), (False, f"threw {OUTSIDE}")])
def test_a_listing_is_the_one_of_the_directory_that_was_looked_at(
    runtime: Runtime, tmp_path: Path, workspace: Path, outside: Path, told: str, *, returns: bool
) -> None:
    known = {**asked(workspace, "ls", {"path": "sub"}), "outside": str(outside), "returns": returns}

    assert run_in_node(runtime, tmp_path, SWAPPED_WHILE_LISTED + CALL, known) == told


@pytest.mark.parametrize(("tool", "given"), SEARCHES)
def test_a_directory_that_goes_away_is_named_by_nothing_of_ours(
    runtime: Runtime, tmp_path: Path, workspace: Path, tool: str, given: dict[str, object]
) -> None:
    gone = f"mv {shlex.quote(str(workspace / 'sub'))} {shlex.quote(str(tmp_path / 'elsewhere'))}"
    programs = ripgrep_that_does(tmp_path, runtime, gone, "")
    parameters = {**given, "path": "sub"}

    said = run_in_node(runtime, tmp_path, CALL, asked(workspace, tool, parameters), path=str(programs))

    assert said == f"threw {OUTSIDE}"


def test_a_file_that_is_replaced_during_a_search_is_left_out(runtime: Runtime, tmp_path: Path, workspace: Path) -> None:
    replaced = shlex.quote(str(workspace / "sub/own"))
    programs = ripgrep_that_does(tmp_path, runtime, "", f"echo another > {replaced}.new; mv {replaced}.new {replaced}")
    parameters = {"pattern": "inside", "path": "sub"}

    said = run_in_node(runtime, tmp_path, CALL, asked(workspace, "grep", parameters), path=str(programs))

    found, note = said.split("\n\n")
    assert sorted(found.split("\n")) == ["deep/own:1: inside", "file:1: inside"]
    assert note == "[Some results were left out, since their files were changed during the search]"
