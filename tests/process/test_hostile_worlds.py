"""A workspace, a client's variables and its surroundings that were made to break things: nothing of them is obeyed."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import Call, Echo
from tests.process.client import SERVE, Child
from tests.support.environment import ensure_installed
from tests.support.real import RealWorld, run_turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "hostile-word"
HUGE_BYTES = 3 * 1024**3
OUTSIDE = "This session can only access files and directories inside its workspace."
SPECIAL = "Only regular files and directories can be accessed."

VARIABLES = {
    "NODE_OPTIONS": "--require /nonexistent.js --max-old-space-size=1",
    "NODE_PATH": "/nonexistent",
    "OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider",
    "OTEL_PROPAGATORS": "b3",
    "PYTHONWARNINGS": "error",
    "PYTHONOPTIMIZE": "2",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "LC_ALL": "C",
    "PI_PACKAGE_DIR": "/nonexistent",
    "PI_OFFLINE": "0",
    "RIPGREP_CONFIG_PATH": "/nonexistent",
}


def fill(workspace: Path, marker: Path) -> None:
    """What somebody may have put into a project for whoever opens it."""
    leave_a_mark = f"import {{ writeFileSync }} from 'node:fs'; writeFileSync({json.dumps(str(marker))}, 'x');\n"
    files = {
        "SYSTEM.md": HOSTILE,
        "APPEND_SYSTEM.md": HOSTILE,
        ".pi/SYSTEM.md": HOSTILE,
        ".pi/extensions/mark.ts": leave_a_mark + "export default function () {}\n",
        ".pi/settings.json": json.dumps({"packages": ["npm:pi-aliases"], "extensions": ["./extensions/mark.ts"]}),
        ".pi/skills/hostile/SKILL.md": f"---\nname: hostile\ndescription: {HOSTILE}\n---\n{HOSTILE}\n",
        "ordinary.txt": "a needle\n",
    }
    for name, content in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(content)
    for name in ("rg", "fd", "node", "pi", "bash"):
        (workspace / name).write_text(f"#!/bin/sh\ntouch {shlex.quote(str(marker))}\n")
        (workspace / name).chmod(0o755)
    os.mkfifo(workspace / "fifo")
    os.mkfifo(workspace / "AGENTS.md")
    (workspace / "huge").touch()
    os.truncate(workspace / "huge", HUGE_BYTES)  # takes no room
    (workspace / "loop").mkdir()
    (workspace / "loop" / "again").symlink_to(workspace / "loop")
    (workspace / "itself").symlink_to("itself")
    (workspace / "out").symlink_to("/etc")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWorld]:
    with RealWorld(tmp_path_factory.mktemp("hostile") / "world", ensure_installed()) as made:
        fill(made.workspace, made.directory / "marker")
        (made.directory / "café").mkdir()
        (made.directory / "café" / "crème.txt").write_text("brûlée")
        places = {"project": "workspace", "missing": "missing", "accent": "café"}
        made.configure(workspaces={alias: str(made.directory / name) for alias, name in places.items()})
        yield made


@pytest.fixture(scope="module")
def child(world: RealWorld) -> Child:
    """One server for all tests, whose client has set what it could."""
    return world.serve(**VARIABLES, PATH=f"{world.workspace}:.:{os.environ['PATH']}")


def answer_of(world: RealWorld, child: Child, session: str, call: Call) -> str:
    """What a tool gave the model."""
    world.model.on("use the tool", call, Echo())
    turn = run_turn(child, session, "use the tool")
    return str(turn["assistantText"])


def test_nothing_that_a_workspace_brings_along_is_loaded_or_run(world: RealWorld, child: Child) -> None:
    for profile in ("reader", "coder"):
        session = world.start_session(child, profile)
        assert answer_of(world, child, session, Call("grep", {"pattern": "needle"})) == "ordinary.txt:1: a needle"
        assert "ordinary.txt" in answer_of(world, child, session, Call("find", {"pattern": "*.txt"}))
        assert child.call("pi_session_close", sessionId=session)["ok"]

    assert not (world.directory / "marker").exists()
    assert HOSTILE not in json.dumps(world.model.requests)


def test_what_is_no_file_or_leads_elsewhere_stalls_no_tool_and_shows_nothing(world: RealWorld, child: Child) -> None:
    session = world.start_session(child)
    expected = {
        ("read", "fifo"): SPECIAL,
        ("ls", "fifo"): SPECIAL,
        ("grep", "fifo"): SPECIAL,
        ("read", "itself"): OUTSIDE,
        ("read", "out/passwd"): OUTSIDE,
        ("read", "/etc/passwd"): OUTSIDE,
        ("ls", "out"): OUTSIDE,
        ("grep", "/etc"): OUTSIDE,
        ("ls", "loop/again/again"): "again/",
    }
    said = {
        (tool, path): answer_of(world, child, session, Call(tool, {"path": path, "pattern": "root"}))
        for tool, path in expected
    }

    assert said == expected


def test_a_file_of_three_gigabytes_is_refused_where_it_would_have_to_be_held(world: RealWorld, child: Child) -> None:
    session = world.start_session(child, "coder")
    change = Call("edit", {"path": "huge", "edits": [{"oldText": "a", "newText": "b"}]})

    assert answer_of(world, child, session, change) == "This file is too large for this operation."
    assert (world.workspace / "huge").stat().st_size == HUGE_BYTES


def test_reading_three_gigabytes_holds_nobody_up_and_can_be_aborted(world: RealWorld, child: Child) -> None:
    reading, other = world.start_session(child), world.start_session(child)
    world.model.on("read it all", Call("read", {"path": "huge"}), Echo())
    started = child.call("pi_session_prompt", sessionId=reading, prompt="read it all")
    assert run_turn(child, other, "hello")["state"] == "completed"

    assert child.call("pi_session_abort", sessionId=reading)["session"]["state"] == "idle"
    turn = child.call("pi_turn_get", sessionId=reading, turnId=started["turn"]["turnId"])["turn"]
    assert turn["state"] == "aborted"


def test_a_workspace_with_an_accent_is_one_like_others_where_the_locale_has_none(
    world: RealWorld, child: Child
) -> None:
    started = child.call("pi_session_start", workspace="accent", executionProfile="coder")
    session = started["session"]["id"]

    assert answer_of(world, child, session, Call("read", {"path": "crème.txt"})) == "brûlée"
    assert answer_of(world, child, session, Call("bash", {"command": "cat crème.txt"})) == "brûlée"


@contextmanager
def full_pipe() -> Iterator[int]:
    """The writing end of a pipe that takes nothing, as of a parent that never reads."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFL, os.O_NONBLOCK)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        fcntl.fcntl(writing, fcntl.F_SETFL, 0)
    try:
        yield writing
    finally:
        os.close(reading)
        os.close(writing)


def test_a_parent_that_never_reads_stderr_holds_nothing_up(world: RealWorld) -> None:
    with (
        full_pipe() as stderr,
        Child(world.environment, cwd=world.directory, stderr=stderr, hears_stderr=False) as child,
    ):
        child.initialize()
        child.send_raw(b"no message\n")
        assert child.receive()["error"]["code"] == -32700
        for _ in range(3):  # each is worth a diagnostic
            assert child.call("pi_session_start", workspace="missing")["error"]["code"] == "workspace_unavailable"
        assert run_turn(child, world.start_session(child), "hello")["state"] == "completed"
        child.close_stdin()
        assert child.wait() == 0


def test_a_server_needs_no_home_no_working_directory_and_no_temporary_directory(world: RealWorld) -> None:
    deleted = world.directory / "deleted for you"
    deleted.mkdir()
    start = f'cd "$1" && rmdir "$1" && exec {shlex.join(SERVE)}'
    command = ("env", "-u", "HOME", "-u", "PATH", "/bin/sh", "-c", start, "sh", str(deleted))
    child = world.serve(command, TMPDIR=str(deleted / "tmp"), TERM="dumb")

    assert run_turn(child, world.start_session(child), "grüße 🦉")["state"] == "completed"
    child.close_stdin()
    assert child.wait() == 0
    (said,) = child.stderr.splitlines()
    assert json.loads(said) == {
        "level": "warning",
        "event": "instructions_left_out",
        "workspace": "project",
        "leftOut": {"not_a_file": 1},
    }
