"""A program on PATH is taken only if nobody but the operator could have put it there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pi_session_mcp.runtime.programs import find_program
from tests.support.runtimes import program

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def path_of(*directories: Path | str) -> dict[str, str]:
    return {"PATH": os.pathsep.join(map(str, directories))}


def test_the_first_program_on_path_is_found_as_it_is_written_there(tmp_path: Path) -> None:
    real = program(tmp_path / "keg" / "24.19.0" / "node")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "node").symlink_to(real)
    program(tmp_path / "later" / "node")

    found = find_program("node", path_of(tmp_path / "absent", tmp_path / "bin", tmp_path / "later"), ())

    assert found == tmp_path / "bin" / "node", "the stable link, not the versioned directory behind it"


def test_relative_and_empty_entries_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "node")
    program(tmp_path / "bin" / "node")
    monkeypatch.chdir(tmp_path)

    assert find_program("node", path_of("", ".", "bin", "./bin"), ()) is None
    assert find_program("node", {}, ()) is None


def test_programs_in_the_project_are_passed_over_also_behind_a_link(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    program(project / "node_modules" / ".bin" / "node")
    outside.mkdir()
    (outside / "node").symlink_to(project / "node_modules" / ".bin" / "node")
    good = program(tmp_path / "good" / "node")
    (project / "link").symlink_to(good.parent)

    entries = path_of(project / "node_modules" / ".bin", outside, project / "link", good.parent)

    assert find_program("node", entries, (project,)) == good


def test_programs_that_others_can_write_are_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "open" / "node").chmod(0o777)
    program(tmp_path / "shared" / "node")
    (tmp_path / "shared").chmod(0o777)
    good = program(tmp_path / "good" / "node")

    assert find_program("node", path_of(tmp_path / "open", tmp_path / "shared", good.parent), ()) == good


def test_what_is_no_program_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "directory" / "node").mkdir(parents=True)
    program(tmp_path / "plain" / "node").chmod(0o644)

    assert find_program("node", path_of(tmp_path / "directory", tmp_path / "plain"), ()) is None


def test_a_working_directory_at_the_root_is_no_project(tmp_path: Path) -> None:
    good = program(tmp_path / "node")

    assert find_program("node", path_of(tmp_path), (tmp_path.__class__("/"),)) == good
