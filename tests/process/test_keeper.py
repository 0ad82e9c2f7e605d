"""A keeper ends everything that its command started, whoever dies first."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import pytest

from pi_session_mcp.keeper import child
from pi_session_mcp.keeper.child import Command, CommandNotStarted
from pi_session_mcp.keeper.pipes import OUTPUT
from pi_session_mcp.platform.processes import scan
from tests.support.trees import STUBBORN, kill_all, processes_of, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psutil

pytestmark = pytest.mark.anyio

FOREVER = "while :; do sleep 1000; done"

AS_ON_MACOS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("program", {program!r})
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
program.processes._IS_LINUX = False
sys.exit(program.main(sys.argv[1:]))
"""
"""A keeper that has neither a subreaper nor /proc: the capability is missing, everything else is real."""


def shell(script: str, *arguments: str, grace_s: float = 0.0, **more: object) -> Command:
    return Command(
        argv=("/bin/bash", "-c", script, "sh", *arguments),
        environment=dict(os.environ),
        directory="/",
        grace_s=grace_s,
        **more,  # type: ignore[arg-type]
    )


class StubbornTree:
    """Where the stubborn script writes, and what it has started."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        self.processes: list[psutil.Process] = []
        self._ready = notes.with_name(f"{notes.name}.ready")
        os.mkfifo(self._ready)

    async def grown(self) -> None:
        """Return when all of it has been started."""
        assert await anyio.Path(self._ready).read_text() == "ready\n"
        self.processes = processes_of(self.notes)
        assert len(self.processes) == 4


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[StubbornTree]:
    """A stubborn tree to be; whatever the test leaves of it is ended."""
    found = StubbornTree(tmp_path / "notes")
    yield found
    kill_all(found.processes)


@pytest.fixture(params=["linux", "macos"])
def keeper_program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of finding a tree; on macOS the first is the second."""
    if request.param == "macos":
        program = tmp_path / "keeper_as_on_macos.py"
        program.write_text(AS_ON_MACOS.format(program=str(child.PROGRAM)))
        monkeypatch.setattr(child, "PROGRAM", program)
    return str(request.param)


async def test_the_status_of_the_command_is_reported(keeper_program: str) -> None:
    keeper = child.start(shell("exit 7"))
    await keeper.started()
    await keeper.gone()
    assert keeper.exit_code == 7


async def test_a_command_that_cannot_be_started_is_told() -> None:
    keeper = child.start(Command(argv=("/does/not/exist",), environment={}, directory="/", grace_s=0))
    with pytest.raises(CommandNotStarted):
        await keeper.started()
    await keeper.gone()


async def test_what_a_command_leaves_in_its_group_is_ended_with_it(keeper_program: str, tmp_path: Path) -> None:
    keeper = child.start(shell(f"sleep 1000 & echo $! > '{tmp_path}/background'"))
    await keeper.started()
    await keeper.gone()
    assert survivors(processes_of(tmp_path)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can find what lost its parent before it was seen")
async def test_what_a_command_leaves_anywhere_is_ended_with_it(tree: StubbornTree) -> None:
    keeper = child.start(shell(STUBBORN, str(tree.notes)))
    await keeper.started()
    await tree.grown()
    await keeper.gone()
    assert survivors(tree.processes) == []


async def test_a_command_ends_by_itself_within_the_grace(keeper_program: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    script = f"read -r _ <&5; echo done > '{tmp_path}/done'"
    keeper = child.start(shell(script, grace_s=60, descriptors={5: reading}))
    os.close(reading)
    await keeper.started()
    keeper.let_go()
    os.close(writing)
    await keeper.gone()
    assert (tmp_path / "done").read_text() == "done\n"
    assert keeper.exit_code == 0


async def test_a_command_that_outstays_the_grace_is_ended_with_its_tree(
    keeper_program: str, tree: StubbornTree
) -> None:
    keeper = child.start(shell(STUBBORN + FOREVER, str(tree.notes), grace_s=0.01))
    await keeper.started()
    await tree.grown()
    findable = [p for p in tree.processes if keeper_program == "linux" or linked(p, keeper.pid)]
    keeper.let_go()
    await keeper.gone()
    assert survivors(findable) == []


def linked(process: psutil.Process, keeper_pid: int) -> bool:
    """Whether a chain of parents leads from the process to the keeper: what macOS can find."""
    return keeper_pid in {parent.pid for parent in process.parents()}


async def test_a_keeper_that_is_asked_to_ends_the_tree_without_grace(tree: StubbornTree) -> None:
    keeper = child.start(shell(STUBBORN + FOREVER, str(tree.notes), grace_s=600))
    await keeper.started()
    await tree.grown()
    keeper.end()
    await keeper.gone()
    assert survivors(tree.processes) == []


async def test_a_stopped_command_is_ended(keeper_program: str) -> None:
    keeper = child.start(shell(FOREVER))
    await keeper.started()
    assert keeper.command_pid is not None
    os.killpg(keeper.command_pid, signal.SIGSTOP)
    keeper.end()
    await keeper.gone()
    assert keeper.exit_code is not None


@pytest.mark.parametrize("ending", ["let go", "told to end"])
@pytest.mark.parametrize("stopped", ["keeper", "everything"])
async def test_whoever_is_stopped_ends_all_the_same(
    keeper_program: str, stopped: str, ending: str, tree: StubbornTree
) -> None:
    keeper = child.start(shell(STUBBORN + FOREVER, str(tree.notes), grace_s=0.01))
    await keeper.started()
    await tree.grown()
    findable = [p for p in tree.processes if keeper_program == "linux" or linked(p, keeper.pid)]
    for process in findable if stopped == "everything" else []:
        process.suspend()
    os.kill(keeper.pid, signal.SIGSTOP)
    keeper.let_go() if ending == "let go" else keeper.end()
    with anyio.fail_after(20):
        await keeper.gone()
    assert survivors(findable) == []


async def test_a_stopped_command_may_use_its_grace(keeper_program: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    keeper = child.start(shell(f"read -r _ <&5; echo done > '{tmp_path}/done'", grace_s=60, descriptors={5: reading}))
    os.close(reading)
    await keeper.started()
    assert keeper.command_pid is not None
    os.killpg(keeper.command_pid, signal.SIGSTOP)
    os.close(writing)
    keeper.let_go()
    await keeper.gone()
    assert (tmp_path / "done").read_text() == "done\n"


async def test_a_stopped_command_can_be_asked_to_end(keeper_program: str, tmp_path: Path) -> None:
    keeper = child.start(shell(f"trap \"echo asked > '{tmp_path}/asked'; exit\" TERM; {FOREVER} & wait", grace_s=60))
    await keeper.started()
    assert keeper.command_pid is not None
    os.killpg(keeper.command_pid, signal.SIGSTOP)
    os.kill(keeper.pid, signal.SIGSTOP)
    keeper.ask()
    with anyio.fail_after(20):
        await keeper.gone()


async def test_a_command_that_forks_while_it_is_ended_is_ended(keeper_program: str) -> None:
    forking = "trap '' TERM; n=0; while [ $n -lt 300 ]; do n=$((n+1)); (sleep 1000) & sleep 0.001; done; wait"
    keeper = child.start(shell(forking))
    await keeper.started()
    assert keeper.command_pid is not None
    keeper.end()
    await keeper.gone()
    # One that has ended and waits for a new parent to reap it holds nothing.
    assert [row.pid for row in scan() if row.group == keeper.command_pid and not row.ended] == []


async def test_signals_to_our_group_do_not_reach_the_command(tmp_path: Path) -> None:
    keeper = child.start(shell(FOREVER))
    await keeper.started()
    assert keeper.command_pid is not None
    assert len({os.getpgid(0), os.getpgid(keeper.pid), os.getpgid(keeper.command_pid)}) == 3
    assert os.getsid(keeper.pid) == keeper.pid
    keeper.end()
    await keeper.gone()


async def test_the_keeper_keeps_no_copy_of_the_commands_descriptors(keeper_program: str) -> None:
    reading, writing = os.pipe()
    keeper = child.start(shell(f"exec 5>&-; exec 1>&-; {FOREVER}", descriptors={5: writing}, streams=(OUTPUT,)))
    os.close(writing)
    await keeper.started()
    with anyio.fail_after(20):
        assert await keeper.read() == b""
        await anyio.wait_readable(reading)
    assert os.read(reading, 1) == b""
    os.close(reading)
    keeper.end()
    await keeper.gone()


@pytest.mark.skipif(sys.platform != "linux", reason="a death signal is Linux's")
async def test_a_command_can_be_bound_to_its_keepers_life() -> None:
    keeper = child.start(shell(FOREVER, dies_with_keeper=True, grace_s=600))
    await keeper.started()
    os.kill(keeper.pid, signal.SIGKILL)
    with anyio.fail_after(20):
        await keeper.gone()


OWNER = """
import anyio, os, sys
from pi_session_mcp.keeper import child, orphans
PATIENCE_S = globals().get("PATIENCE_S", 4.0)
async def main():
    orphans.adopt_orphans()
    command = child.Command(argv=("/bin/bash", "-c", *sys.argv[2:]), environment=dict(os.environ), directory="/",
                            grace_s=float(sys.argv[1]), patience_s=PATIENCE_S)
    keeper = child.start(command)
    await keeper.started()
    print(keeper.pid, keeper.command_pid, flush=True)
    await keeper.gone()
    print("gone", flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""


@contextmanager
def owner(*arguments: str, program: str = OWNER) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that owns a keeper, so that a test can kill it."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize("victim", ["owner", "owner's group"])
async def test_killing_the_owner_ends_the_tree(victim: str, tree: StubbornTree) -> None:
    with owner("0.05", STUBBORN + FOREVER, "sh", str(tree.notes)) as process:
        await tree.grown()
        (os.killpg if victim == "owner's group" else os.kill)(process.pid, signal.SIGKILL)
        assert survivors(tree.processes) == []


@pytest.mark.skipif(sys.platform != "linux", reason="a death signal is Linux's")
async def test_a_stopped_keeper_goes_on_when_its_owner_is_killed(tree: StubbornTree) -> None:
    with owner("0.05", STUBBORN + FOREVER, "sh", str(tree.notes)) as process:
        assert process.stdout is not None
        keeper_pid = int(process.stdout.readline().split()[0])
        await tree.grown()
        os.kill(keeper_pid, signal.SIGSTOP)
        process.kill()
        assert survivors(tree.processes) == []


NEVER_ENDS = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("program", {program!r})
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
program.end = lambda *_: time.sleep(1000)
sys.exit(program.main(sys.argv[1:]))
"""
"""A keeper that is as if somebody stopped it again whenever it goes on."""

IMPATIENT = """
import pathlib, sys
from pi_session_mcp.keeper import child
child.PROGRAM, PATIENCE_S = pathlib.Path(sys.argv.pop(1)), 0.1
started = child.Child.started
async def start_and_let_go(keeper):
    await started(keeper)
    sys.stdin.read(1)
    keeper.let_go()
child.Child.started = start_and_let_go
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper inherits the tree of a killed keeper")
async def test_a_keeper_that_never_comes_to_an_end_is_ended_and_its_tree_swept(
    tree: StubbornTree, tmp_path: Path
) -> None:
    never = tmp_path / "never.py"
    never.write_text(NEVER_ENDS.format(program=str(child.PROGRAM)))
    arguments = (str(never), "0.05", STUBBORN + FOREVER, "sh", str(tree.notes))
    with owner(*arguments, program=IMPATIENT + OWNER) as process:
        await tree.grown()
        assert process.stdin is not None
        process.stdin.close()
        assert process.stdout is not None
        assert process.stdout.readline()
        assert process.stdout.readline() == "gone\n"
        assert survivors(tree.processes) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper inherits the tree of a killed keeper")
async def test_killing_the_keeper_leaves_its_tree_to_the_owner_which_ends_it(tree: StubbornTree) -> None:
    with owner("0.05", STUBBORN + FOREVER, "sh", str(tree.notes)) as process:
        assert process.stdout is not None
        keeper_pid = int(process.stdout.readline().split()[0])
        await tree.grown()
        os.kill(keeper_pid, signal.SIGKILL)
        assert process.stdout.readline() == "gone\n"
        assert survivors(tree.processes) == []


async def test_a_command_that_is_asked_to_end_may_take_its_time(keeper_program: str, tmp_path: Path) -> None:
    on_term = f"echo asked > '{tmp_path}/asked'; sleep 0.1; exit 5"
    os.mkfifo(tmp_path / "ready")
    keeper = child.start(shell(f"trap \"{on_term}\" TERM; echo > '{tmp_path}/ready'; while :; do sleep 1000; done"))
    await keeper.started()
    await anyio.Path(tmp_path / "ready").read_text()

    keeper.ask()
    await keeper.gone()

    assert (tmp_path / "asked").read_text() == "asked\n"
    assert keeper.exit_code == 5


BLIND = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("program", {program!r})
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
seen = program.processes.scan
def scan():
    if os.path.exists({blind!r}):
        raise OSError("the table cannot be read")
    return seen()
program.processes.scan = scan
sys.exit(program.main(sys.argv[1:]))
"""
"""A keeper that cannot read the process table as long as a file exists."""


@pytest.fixture
def blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """While this file exists, no keeper of the test can read the process table."""
    flag = tmp_path / "blind"
    program = tmp_path / "blind_keeper.py"
    program.write_text(BLIND.format(program=str(child.PROGRAM), blind=str(flag)))
    monkeypatch.setattr(child, "PROGRAM", program)
    yield flag
    flag.unlink(missing_ok=True)
    while child._abandoned:
        child._abandoned.pop().wait(20)


@contextmanager
def a_lock(path: Path) -> Iterator[int]:
    """A descriptor that holds the exclusive lock of a file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock of the file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


async def until_free(path: Path) -> None:
    with anyio.fail_after(20):
        while not is_free(path):  # noqa: ASYNC110 - the kernel tells nobody that a lock was freed
            await anyio.sleep(0.01)


async def test_a_guardian_holds_a_lock_until_its_tree_is_gone(tmp_path: Path, keeper_program: str) -> None:
    lock = tmp_path / "lock"
    with a_lock(lock) as descriptor:
        keeper = child.start(shell(f"trap '' TERM; {FOREVER}", held=descriptor))
        await keeper.started()
    assert not is_free(lock)
    keeper.let_go()
    await keeper.gone()
    await until_free(lock)


async def test_a_guardian_that_cannot_see_starts_nothing(tmp_path: Path, blind: Path) -> None:
    await anyio.Path(blind).touch()
    with a_lock(tmp_path / "lock") as descriptor:
        keeper = child.start(shell(f"touch '{tmp_path}/ran'", held=descriptor))
        with pytest.raises(CommandNotStarted):
            await keeper.started()
        await keeper.gone()
    assert keeper.unsure
    assert not (tmp_path / "ran").exists()
    await until_free(tmp_path / "lock")


async def test_a_guardian_that_goes_blind_says_so_and_holds_the_lock_until_it_sees_again(
    tmp_path: Path, blind: Path
) -> None:
    lock = tmp_path / "lock"
    with a_lock(lock) as descriptor:
        keeper = child.start(shell(f"touch '{blind}'; exit 0", held=descriptor))
        await keeper.started()
        await keeper.gone()
    assert keeper.unsure
    assert not is_free(lock)
    await anyio.Path(blind).unlink()
    await until_free(lock)
