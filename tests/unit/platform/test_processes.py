"""Reading the process table, on Linux and on macOS."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.platform.processes import below, check_ps, parse_proc_stat, parse_ps, scan_ps

if TYPE_CHECKING:
    from pathlib import Path

PS = """\
    1     0     1 Ss   Mon Nov 30 10:28:01 2026
  501     1   501 S    Mon Nov 30 10:30:11 2026
  502   501   501 Z+   Mon Nov 30 10:30:12 2026
"""


@pytest.mark.parametrize("name", ["sh", "a b", ") R 1 1", "((", "tmux: server"])
def test_a_name_cannot_forge_the_fields_of_a_process(name: str) -> None:
    row = parse_proc_stat(f"42 ({name}) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 1")
    assert (row.pid, row.parent, row.group, row.ended, row.start) == (42, 7, 42, False, "98765")


def test_the_table_of_ps_is_read() -> None:
    rows = parse_ps(PS)
    assert [(row.pid, row.parent, row.group, row.ended) for row in rows] == [
        (1, 0, 1, False),
        (501, 1, 501, False),
        (502, 501, 501, True),
    ]
    assert rows[1].start == "Mon Nov 30 10:30:11 2026"


@pytest.mark.parametrize("line", ["1 2 3 S", "x 1 1 S Mon", "ps: illegal option", "1 2"])
def test_a_table_that_is_not_understood_tells_nothing(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_ps(PS + line)


def test_the_real_ps_shows_this_process_and_not_itself() -> None:
    rows = scan_ps()
    assert os.getpid() in {row.pid for row in rows}
    assert not [row for row in rows if row.parent == os.getpid() and row.ended]


def test_what_is_below_a_process_is_found_by_parents_even_in_a_loop() -> None:
    rows = parse_ps(PS + "  600   602   600 S    x\n  602   600   600 S    x\n")
    assert {row.pid for row in below(rows, {1})} == {501, 502}
    assert {row.pid for row in below(rows, {600})} == {602}


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program that is root's")


def test_a_ps_that_somebody_else_owns_or_can_write_is_not_run(tmp_path: Path) -> None:
    ps = tmp_path / "ps"
    script(ps, f"touch {tmp_path}/ran")
    ps.chmod(0o775)
    with pytest.raises(OSError, match="ps"):
        scan_ps(str(ps))
    if os.geteuid() == 0:
        ps.chmod(0o755)
        os.chown(ps, 12345, 0)
        with pytest.raises(OSError, match="ps"):
            scan_ps(str(ps))
    assert not (tmp_path / "ran").exists()


def test_the_real_ps_is_trusted() -> None:
    check_ps()


@needs_root
@pytest.mark.parametrize(
    "text",
    [
        "cat <<END\n" + PS + "END",  # without us
        '/bin/ps "$@"; echo and a line more',
        '/bin/ps "$@"; exit 3',
        "exec sleep 1000",
        "exec cat /dev/zero",
        "exit 0",
    ],
    ids=["without us", "with a foreign line", "failing", "for ever", "without end", "empty"],
)
def test_a_table_that_cannot_be_believed_tells_nothing(text: str, tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        scan_ps(script(tmp_path / "ps", text))


@needs_root
@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of a process from /proc")
def test_ps_gets_no_environment_but_its_language(tmp_path: Path) -> None:
    notes = tmp_path / "environment"
    with pytest.raises(ValueError, match=r".+"):
        scan_ps(script(tmp_path / "ps", f"tr '\\0' '\\n' < /proc/self/environ > {notes}; echo x"))
    names = {line.split("=")[0] for line in notes.read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"LC_ALL"}
