"""What `bash` starts lives as long as its session and no longer; and nobody notices that its commands have an owner."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_session_mcp.demo.model import Call, Say, write_agent_directory
from tests.contract.host.calls import result_of
from tests.support.raw_host import CODING, WAIT_S, RawHost
from tests.support.trees import is_alive, kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from pi_session_mcp.runtime.locate import Runtime
    from tests.support.raw_host import RawSession

NEEDS_SETSID = pytest.mark.skipif(shutil.which("setsid") is None, reason="this system has no setsid")

BACKGROUND = {
    "in the background": "sleep 1000 > /dev/null 2>&1 & echo $! > left",
    "with its output": "sleep 1000 & echo $! > left",
    "nohup": "nohup sleep 1000 > /dev/null 2>&1 & echo $! > left",
    "deaf": "(trap '' TERM HUP INT; echo $BASHPID > left; while :; do sleep 1000; done) > /dev/null 2>&1 & "
    "until [ -s left ]; do sleep 0.01; done",
}
OUT_OF_ITS_SESSION = {
    "setsid": "setsid sh -c 'echo $$ > left; exec sleep 1000' > /dev/null 2>&1 & "
    "until [ -s left ]; do sleep 0.01; done",
    "a daemon": "(setsid sh -c 'echo $$ > left; exec sleep 1000' > /dev/null 2>&1 &) ; "
    "until [ -s left ]; do sleep 0.01; done",
    "without its environment": "(env -i setsid /bin/sh -c 'echo $$ > left; exec sleep 1000' > /dev/null 2>&1 &); "
    "until [ -s left ]; do sleep 0.01; done",
}
ENDS = {("a daemon", "KILL"), ("deaf", "TERM"), ("setsid", "its channel")}
"""Which of them the plain run ends with their host, and how."""
WAYS = [*BACKGROUND, *(pytest.param(way, marks=NEEDS_SETSID) for way in OUT_OF_ITS_SESSION)]


@contextmanager
def left_by(session: RawSession, model: ScriptedModel, workspace: Path, way: str) -> Iterator[psutil.Process]:
    """What a command has left running, once the command has ended and its turn, too."""
    (workspace / "left").unlink(missing_ok=True)
    command = {**BACKGROUND, **OUT_OF_ITS_SESSION}[way]
    model.on(f"start it {way}", Call("bash", {"command": command}), Say("started"))
    assert session.say(f"start it {way}") == "started"
    process = psutil.Process(int((workspace / "left").read_text()))
    try:
        yield process
    finally:
        kill_all([process])


@pytest.mark.parametrize("way", WAYS)
def test_what_a_command_leaves_behind_outlives_it_and_ends_with_the_session(
    host: RawHost, model: ScriptedModel, workspace: Path, way: str
) -> None:
    session = host.session(workspace, tools=CODING).opened()

    with left_by(session, model, workspace, way) as process:
        assert result_of(session, model, "bash", command=f"kill -0 {process.pid} && echo lives").startswith("lives")

        session.ask("dispose")

        assert not is_alive(process)


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper is the parent of what lost its own")
def test_a_stopped_owner_ends_with_the_session_and_so_does_what_it_owns(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    session = host.session(workspace, tools=CODING).opened()

    with left_by(session, model, workspace, "in the background") as process:
        owner = process.parent()
        assert owner is not None
        owner.suspend()

        session.ask("dispose")

        assert survivors([owner, process]) == []


def test_the_end_of_a_session_leaves_what_others_have_started(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    staying, leaving = (host.session(workspace, tools=CODING).opened() for _ in range(2))

    with (
        left_by(staying, model, workspace, "nohup") as stays,
        left_by(leaving, model, workspace, "in the background") as goes,
    ):
        leaving.ask("dispose")

        assert (is_alive(stays), is_alive(goes)) == (True, False)
        staying.ask("dispose")
        assert not is_alive(stays)


@pytest.mark.parametrize(
    ("way", "end"),
    [
        pytest.param(way, end, marks=() if (way, end) in ENDS else pytest.mark.matrix)
        for way in (*BACKGROUND, *(OUT_OF_ITS_SESSION if shutil.which("setsid") else ()))
        for end in ("its channel", "TERM", "KILL")
    ],
)
def test_the_end_of_a_host_ends_what_its_commands_have_left(
    own_host: RawHost, model: ScriptedModel, workspace: Path, way: str, end: str
) -> None:
    session = own_host.session(workspace, tools=CODING).opened()

    with left_by(session, model, workspace, way) as process:
        if end == "its channel":
            own_host.close_channel()
        else:
            own_host.process.send_signal(getattr(signal, f"SIG{end}"))

        own_host.process.wait(WAIT_S)
        assert survivors([process]) == []


@NEEDS_SETSID
def test_an_abort_ends_the_command_at_once_and_the_session_what_left_its_group(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    os.mkfifo(workspace / "ready")
    command = (
        "echo $$ > shell; sleep 1000 & echo $! > child; "
        "setsid sh -c 'echo $$ > left; exec sleep 1000' > /dev/null 2>&1 & "
        "until [ -s left ]; do sleep 0.01; done; echo ready > ready; wait"
    )
    model.on("run", Call("bash", {"command": command}), Say("over"))
    session = host.session(workspace, tools=CODING).opened()
    turn = session.start("run")
    assert (workspace / "ready").read_text() == "ready\n"
    shell, child, left = (psutil.Process(int((workspace / name).read_text())) for name in ("shell", "child", "left"))

    session.ask("abort")

    assert session.settled(turn)["aborted"]
    assert survivors([shell, child]) == []
    assert is_alive(left)
    session.ask("dispose")
    assert not is_alive(left)


def test_a_command_whose_owner_is_killed_ends_and_the_next_one_runs(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    session = host.session(workspace, tools=CODING).opened()

    said = result_of(session, model, "bash", command="echo before; kill -9 $PPID; sleep 1000")

    assert said == "before\n\n\nCommand exited with code 137"
    assert result_of(session, model, "bash", command="echo after") == "after\n"


def test_a_command_that_stops_its_owner_is_aborted_and_ended_all_the_same(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    os.mkfifo(workspace / "ready")
    stopping = "sleep 1000 > /dev/null 2>&1 & echo $! > left; kill -STOP $PPID; echo ready > ready"
    session = host.session(workspace, tools=CODING).opened()
    model.on("run", Call("bash", {"command": f"{stopping}; sleep 1000"}), Say("over"))
    turn = session.start("run")
    assert (workspace / "ready").read_text() == "ready\n"
    left = psutil.Process(int((workspace / "left").read_text()))

    session.ask("abort")

    assert session.settled(turn)["aborted"]
    assert survivors([left]) == []


def test_nobody_who_looks_for_a_program_by_its_command_line_finds_an_owner(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    session = host.session(workspace, tools=CODING).opened()
    result_of(session, model, "bash", command="sleep 1234 > /dev/null 2>&1 & : marker")

    found = result_of(session, model, "bash", command="ps -A -o args= | grep -c '[s]leep 1234'; env | grep -c MCP_COMM")

    assert found.split()[:2] == ["1", "0"]


def test_more_commands_than_may_leave_something_running_are_refused(
    own_host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    session = own_host.session(workspace, tools=CODING).opened()
    calls = [Call("bash", {"command": "sleep 1000 > /dev/null 2>&1 &"}) for _ in range(64)]
    model.on("many", *calls, Say("started"))
    assert session.say("many") == "started"

    refused = result_of(session, model, "bash", command="echo one more")

    assert refused.startswith("Too many commands of this session still run")
    others = own_host.session(workspace, tools=CODING).opened()
    assert result_of(others, model, "bash", command="echo one more") == "one more\n"


# --- nobody notices ---------------------------------------------------------------------------------------------------

SAME = {
    "output": "echo out; echo err >&2",
    "nothing": "true",
    "a code": "echo x; exit 3",
    "not found": "no-such-command-anywhere",
    "killed": "kill -9 $$",
    "terminated": "kill -TERM $$",
    "its whole group": "kill -TERM 0; sleep 1000",
    "quotes": """printf '%s|' "a b" 'c"d' $'e\\nf' \\$HOME""",
    "lines": "echo one\necho two # comment\n",
    "unicode": "echo 'äöü 日本 \U0001f600' | wc -c",
    "input": "cat; test -t 0 || echo no terminal",
    "signals": "grep -E 'Sig(Blk|Ign)' /proc/self/status 2> /dev/null || echo unknown",
    "a group of its own": "test $(ps -o pgid= -p $$) = $$ && echo own",
    "variables": "env | grep -vE '^(PI_SESSION_ID|SHLVL|_|PWD|OLDPWD)=' | sort",
    "place": "pwd",
    "limits": "ulimit -a; umask",
    "much": "seq 1 200000 | tail -c 300000 | md5sum; seq 1 3000",
    "late output": "(sleep 0.05; echo late) & echo early",
    "later than is waited for": "(sleep 1; echo late) & echo early",
    "sent to a new session": "setsid true; echo $?",
    "stdout by its name": "echo named 2> /dev/null > /dev/stdout; echo $?",
    "long": f"echo {'x' * 100_000} | wc -c",
    "too long": f"echo {'x' * 140_000} | wc -c",
}


@pytest.fixture(scope="module")
def plain_host(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawHost]:
    """A host whose `bash` is Pi's own in every respect."""
    agent = tmp_path_factory.mktemp("plain") / "agent"
    agent.mkdir()
    with RawHost(runtime, agent, agent.parent) as host:
        host.greet(python=None)
        yield host


@pytest.fixture
def both(own_host: RawHost, plain_host: RawHost, model: ScriptedModel, tmp_path: Path) -> tuple[RawSession, RawSession]:
    """A session whose commands have owners, and one whose commands have none, in one workspace."""
    write_agent_directory(plain_host.agent_directory, model.base_url)
    workspace = tmp_path / "both"
    workspace.mkdir()
    owned, plain = (host.session(workspace, tools=CODING).opened() for host in (own_host, plain_host))
    return owned, plain


def test_commands_answer_as_they_do_without_an_owner(both: tuple[RawSession, RawSession], model: ScriptedModel) -> None:
    owned, plain = both
    different = {}
    for name, command in SAME.items():
        answers = [comparable(result_of(session, model, "bash", command=command)) for session in (owned, plain)]
        if answers[0] != answers[1]:
            different[name] = answers

    assert different == {}


@pytest.mark.parametrize(
    ("command", "timeout"),
    [("echo x; sleep 1000", 0.3), ("while :; do echo x; done & exit 3", 0.5), ("true", -1), ("true", 1e9)],
)
def test_timeouts_are_told_as_they_are_without_an_owner(
    both: tuple[RawSession, RawSession], model: ScriptedModel, command: str, timeout: float
) -> None:
    answers = [result_of(session, model, "bash", command=command, timeout=timeout) for session in both]

    owned, plain = (re.sub(r"after [\d.]+ seconds, but", "", said.splitlines()[-1]) for said in answers)
    assert owned == plain


def test_a_workspace_that_is_gone_is_told_as_it_is_without_an_owner(
    both: tuple[RawSession, RawSession], model: ScriptedModel
) -> None:
    for session in both:
        session.cwd.rmdir() if session.cwd.exists() else None

    owned, plain = (result_of(session, model, "bash", command="true") for session in both)

    assert owned == plain


def comparable(said: str) -> str:
    """Without what differs from call to call, and from one host's home to another's."""
    said = re.sub(r"pi-bash-[0-9a-f]{16}", "pi-bash", said)
    said = re.sub(r"/bin/bash: line \d+: +\d+ ", "/bin/bash: ", said)
    return re.sub(r"^(HOME|PI_CODING_AGENT_DIR|PATH)=.*$", r"\1", said, flags=re.MULTILINE)
