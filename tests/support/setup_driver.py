"""Runs setup with stub clients, and kills or signals at one step: `python -m tests.support.setup_driver`.

Reads one JSON request a line and answers with one JSON line. Each run happens in a forked child, so that it can be
killed, and so that the imports are paid once. The world is the real one but for three things: the installation is what
the request says, the doctor is clean, and `on_step` acts.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.keeper import child, orphans
from pi_session_mcp.platform import processes
from pi_session_mcp.platform.filesystem import has_trusted_locks
from pi_session_mcp.platform.lock import attempt_exlock
from pi_session_mcp.setup.inputs import SetupInputs
from pi_session_mcp.setup.release import Installation
from pi_session_mcp.setup.result import Operation
from pi_session_mcp.setup.run import run
from pi_session_mcp.setup.system import System, this_system
from pi_session_mcp.setup.targets import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.setup.steps import Running

HELD_WITHIN_S = 60.0


@dataclass(slots=True)
class Saboteur:
    """Notes every step in a file, and at `step` does to the `victim` what the request says.

    `held` is a file: the client is waited for until it has come so far in its work that it wrote it.
    """

    notes: Path
    step: str | None = None
    victim: str = "command"
    held: Path | None = None

    def __call__(self, step: str, running: Running | None) -> None:
        """A step of the run."""
        pids = "" if running is None else f" {running.guardian} {running.command}"
        with self.notes.open("a") as notes:
            notes.write(f"{step}{pids}\n")
        if step == self.step:
            if self.held is not None:
                self._wait_for(self.held)
            self.step = None
            self._strike(running)

    def _wait_for(self, held: Path) -> None:
        until = time.monotonic() + HELD_WITHIN_S
        while not held.exists():
            assert time.monotonic() < until, "the client never came so far"
            time.sleep(0.005)

    def _strike(self, running: Running | None) -> None:
        if self.victim == "blind":
            (self.notes.parent / "blind").touch()
            return
        if self.victim in {"SIGINT", "SIGTERM"}:
            os.kill(os.getpid(), signal.Signals[self.victim])
            return
        if running is not None and self.victim in {"guardian", "both"}:
            os.kill(running.guardian, signal.SIGKILL)
        if running is not None and self.victim == "client":
            os.kill(running.command, signal.SIGKILL)
        if self.victim in {"command", "both"}:
            os.kill(os.getpid(), signal.SIGKILL)


def installation_of(directory: str) -> Installation:
    """One that the test made: `bin/pi-session-mcp` and `package` in a directory."""
    root = Path(directory)
    return Installation(
        executable=root / "bin" / "pi-session-mcp",
        package=root / "package",
        version="1.0",
        entry_points=("console_scripts x = y",),
        is_editable=False,
    )


def world_of(request: Mapping[str, Any], environ: Mapping[str, str]) -> SetupInputs:
    """The world that the request describes."""
    world = SetupInputs(
        environ=environ,
        cwd=Path(request["cwd"]),
        doctor_is_clean=lambda: bool(request.get("clean", True)),
        tools=frozenset(request.get("tools", ())),
        installation=lambda _environ: installation_of(request["installation"]),
        on_step=Saboteur(
            Path(request["notes"]),
            request.get("step"),
            request.get("victim", "command"),
            None if request.get("held") is None else Path(request["held"]),
        ),
        deadlines=Deadlines(
            setup_lock_s=request.get("lock_within_s", 60.0), setup_command_s=request.get("command_within_s", 60.0)
        ),
    )
    if request.get("untrusted_locks"):
        return replace(world, system=replace(world.system, trusts_locks=lambda _directory: False))
    return replace(world, system=as_on_macos(request.get("other_volume"))) if request.get("macos") else world


def as_on_macos(other_volume: str | None) -> System:
    """What macOS has instead, on Linux: one call that opens and locks, `ps`, and a rule for file systems.

    What lies on `other_volume` is of another type than the root.
    """
    processes._IS_LINUX = False

    def open_locked(path: Path, flags: int) -> int:
        descriptor = os.open(path, flags & ~_EXLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def attempt(path: Path) -> int | None:
        return attempt_exlock(path, open_locked=open_locked, flag=_EXLOCK)

    def type_of(path: Path | str) -> int:
        return 27 if other_volume is not None and Path(path).is_relative_to(other_volume) else 26

    def trusts_locks(directory: Path) -> bool:
        return has_trusted_locks(directory, platform="darwin", type_of=type_of)

    return replace(this_system(), attempt_lock=attempt, trusts_locks=trusts_locks)


_EXLOCK = 0x20000000  # a bit that open(2) on Linux does not know, as O_EXLOCK is not

_KEEPER = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("program", {program!r})
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
{change}
sys.exit(program.main(sys.argv[1:]))
"""
_BLIND = """
seen = program.processes.scan
def scan():
    if os.path.exists({flag!r}):
        raise OSError("the table cannot be read")
    return seen()
program.processes.scan = scan
"""


def keeper_on_macos(directory: Path) -> str:
    """The path of a keeper that has neither a subreaper nor /proc."""
    return _written(directory / "keeper_on_macos.py", "program.processes._IS_LINUX = False")


def keeper_that_goes_blind(directory: Path) -> str:
    """The path of a keeper that cannot read the process table while `blind` exists in `directory`."""
    return _written(directory / "keeper_that_goes_blind.py", _BLIND.format(flag=str(directory / "blind")))


def _written(path: Path, change: str) -> str:
    path.write_text(_KEEPER.format(program=str(child.PROGRAM), change=change))
    return str(path)


def perform(request: Mapping[str, Any]) -> dict[str, Any]:
    """The result's members and exit status, in this process."""
    os.environ.clear()
    os.environ.update(request["environ"])
    os.umask(request.get("umask", 0o022))
    if request.get("file_bytes") is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_bytes"],) * 2)  # a disk that is full
    if request.get("descriptors") is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (request["descriptors"],) * 2)
    if request.get("keeper") is not None:
        child.PROGRAM = Path(request["keeper"])  # type: ignore[misc]
    if not request.get("macos"):
        orphans.adopt_orphans()
    result = run(
        Operation(request["operation"]), [parse(text) for text in request["targets"]], world_of(request, os.environ)
    )
    return {**result.members(), "exitCode": int(result.exit_status)}


def in_child(request: Mapping[str, Any]) -> dict[str, Any]:
    """The same in a child that may be killed: then only `signal` is answered."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        code = 99
        with suppress(BaseException):
            answer = perform(request)
            os.write(writing, json.dumps(answer).encode())
            code = answer["exitCode"]
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as answered:
        said = answered.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return json.loads(said) if said else {"signal": -status if status < 0 else None, "crashed": status == 99}


def main() -> None:
    """Answer requests until the end of the input."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(in_child(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
