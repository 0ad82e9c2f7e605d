"""The processes of one server: how much memory and CPU they have taken, how often they woke up, and when they ended."""

from __future__ import annotations

import os
import select
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from benchmarks.growth import Memory

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

SERVER: Final = "server"
_IS_LINUX: Final = sys.platform == "linux"
_KIB_IN_MIB: Final = 1024
_LOOK_AGAIN_S: Final = 0.001
_SETTLED_MS: Final = 10.0
"""CPU time comes in ticks of this length."""
_SETTLE_PAUSE_S: Final = 0.2
_QUIET_LOOKS: Final = 3


def processes(root: int) -> list[psutil.Process]:
    """The process `root` and everything below it that is alive."""
    with suppress(psutil.NoSuchProcess):
        server = psutil.Process(root)
        return [server, *server.children(recursive=True)]
    return []


def by_role(root: int) -> dict[str, psutil.Process]:
    """The processes of a server by what they are; a second one of a kind has its number."""
    seen: dict[str, psutil.Process] = {}
    amounts: Counter[str] = Counter()
    for process in processes(root):
        role = SERVER if process.pid == root else _role(process)
        amounts[role] += 1
        seen[role if amounts[role] == 1 else f"{role} {amounts[role]}"] = process
    return seen


def _role(process: psutil.Process) -> str:
    try:
        program = Path(process.cmdline()[0]).name
    except (psutil.Error, IndexError):
        return "other"
    return "host" if program.startswith("node") else "keeper" if program.startswith("python") else "other"


def memory(root: int) -> Memory:
    """Of a whole tree."""
    seen = [memory_of(process) for process in processes(root)]
    return Memory(sum(one.pss for one in seen), sum(one.rss for one in seen))


def memory_of(process: psutil.Process) -> Memory:
    """Of one process; nothing when it is gone.

    The server and its keepers tell only root what they share: to anybody else they weigh their whole RSS.
    """
    try:
        if not _IS_LINUX:
            return _resident(process)
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    except PermissionError:
        return _resident(process)
    except (OSError, psutil.Error):
        return Memory(0, 0)
    sizes = {name: int(rest.split()[0]) / _KIB_IN_MIB for name, rest in (line.split(":", 1) for line in lines)}
    return Memory(sizes["Pss"], sizes["Rss"])


def _resident(process: psutil.Process) -> Memory:
    try:
        rss = process.memory_info().rss / _KIB_IN_MIB / _KIB_IN_MIB
    except psutil.Error:
        return Memory(0, 0)
    return Memory(rss, rss)


def cpu_ms(root: int) -> float:
    """CPU time of a whole tree, with that of its children that have ended."""
    return sum(cpu_of(process) for process in processes(root))


def cpu_of(process: psutil.Process) -> float:
    """CPU time of one process in milliseconds, with that of its children that have ended; 0 when it is gone."""
    with suppress(psutil.Error):
        return sum(process.cpu_times()[:4]) * 1000
    return 0.0


def settle(root: int, within_s: float) -> None:
    """Return when the tree does nothing any more, or after `within_s`."""
    until = time.monotonic() + within_s
    quiet, before = 0, cpu_ms(root)
    # More than once, because a process that gets no processor looks just like one that needs none.
    while quiet < _QUIET_LOOKS and time.monotonic() < until:
        time.sleep(_SETTLE_PAUSE_S)
        now = cpu_ms(root)
        quiet = quiet + 1 if now - before < _SETTLED_MS else 0
        before = now


def wakeups(root: int) -> int:
    """How often the threads of one process have slept and been woken up; 0 when it is gone."""
    try:
        if not _IS_LINUX:
            return int(psutil.Process(root).num_ctx_switches().voluntary)
        return sum(_switches(thread / "status") for thread in Path(f"/proc/{root}/task").iterdir())
    except (OSError, psutil.Error):
        return 0


def _switches(status: Path) -> int:
    for line in status.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    return 0


@dataclass(frozen=True, slots=True)
class Ended:
    """When a server was gone and when its last process was, in seconds since the epoch of `perf_counter`."""

    server: float
    last: float
    left: int


def watch_end(server: subprocess.Popen[bytes], others: Iterable[psutil.Process], within_s: float) -> Ended:
    """Wait until a server and the others of its tree have ended, or for `within_s`."""
    alive = {process.pid: process for process in others if process.pid != server.pid}
    until = time.perf_counter() + within_s
    server_at = last_at = until
    waiting = _Ends([server.pid, *alive])
    try:
        while waiting.pids and time.perf_counter() < until:
            for pid in waiting.some(until - time.perf_counter()):
                last_at = time.perf_counter()
                server_at = last_at if pid == server.pid else server_at
    finally:
        waiting.close()
    left = len(waiting.pids)
    return Ended(server_at, until if left else last_at, left)


class _Ends:
    """Tells of processes that they have ended; at once on Linux, within a millisecond elsewhere."""

    def __init__(self, pids: list[int]) -> None:
        self.pids = set(pids)
        self._poll = select.poll()
        self._descriptors: dict[int, int] = {}
        if sys.platform == "linux":
            for pid in pids:
                self._attend(pid)

    if sys.platform == "linux":

        def _attend(self, pid: int) -> None:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                self.pids.discard(pid)
                return
            self._descriptors[descriptor] = pid
            self._poll.register(descriptor, select.POLLIN)

    def some(self, within_s: float) -> list[int]:
        """Some that have ended, none of them told before; empty if there is none within the time."""
        if _IS_LINUX:
            over = [self._forget(descriptor) for descriptor, _ in self._poll.poll(max(1.0, within_s * 1000))]
        else:
            time.sleep(_LOOK_AGAIN_S)
            over = [pid for pid in self.pids if _has_ended(pid)]
        self.pids -= set(over)
        return over

    def _forget(self, descriptor: int) -> int:
        self._poll.unregister(descriptor)
        os.close(descriptor)
        return self._descriptors.pop(descriptor)

    def close(self) -> None:
        """Let go of what is still watched."""
        for descriptor in list(self._descriptors):
            self._forget(descriptor)


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
