"""Where temporary files are kept when the environment names no place that can be used."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.platform.temporary import (
    is_usable,
    named_temporary_directory,
    with_usable_temporary_directory,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({}, "/tmp"),
        ({"TEMP": "/c"}, "/c"),
        ({"TMP": "/b", "TEMP": "/c"}, "/b"),
        ({"TMPDIR": "/a", "TMP": "/b"}, "/a"),
        ({"TMPDIR": "", "TMP": "/b"}, "/b"),
    ],
)
def test_the_directory_is_the_one_that_node_takes(environ: dict[str, str], named: str) -> None:
    assert named_temporary_directory(environ) == named


def test_a_directory_of_ones_own_is_usable_and_stays(tmp_path: Path) -> None:
    environ = {"TMPDIR": str(tmp_path), "OTHER": "x"}

    assert is_usable(str(tmp_path))
    assert with_usable_temporary_directory(environ) == environ


@pytest.mark.parametrize("name", ["TMPDIR", "TMP", "TEMP"])
@pytest.mark.parametrize("what", ["absent", "a file", "relative", "read-only", "full", "no path"])
def test_what_cannot_be_used_is_replaced_by_what_can(tmp_path: Path, name: str, what: str) -> None:
    match what:
        case "a file":
            (tmp_path / what).write_text("")
        case "read-only":
            if os.geteuid() == 0:
                pytest.skip("root may write everywhere")
            (tmp_path / what).mkdir(mode=0o555)
        case "full":
            if not os.path.isdir("/proc/self"):
                pytest.skip("needs a file system without room")
    value = {"relative": ".", "full": "/proc/self", "no path": "/\0"}.get(what, str(tmp_path / what))

    assert not is_usable(value)
    assert with_usable_temporary_directory({name: value}) == {name: value, "TMPDIR": "/tmp"}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is UTF-8")
def test_a_directory_that_node_would_take_for_another_is_replaced_too(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd-\xff")
    odd.mkdir()

    assert not is_usable(str(odd))
    assert with_usable_temporary_directory({"TMPDIR": str(odd)})["TMPDIR"] != str(odd)
