"""Facts and proofs about processes: who there is, whose children they are, and whether a tree is gone.

Linux and macOS answer through the same functions. The keeper's programs import this module on its own, without the
package, so it needs the standard library only.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time

PS_WITHIN_S = 2.0
"""One look at the process table by `ps` (macOS)."""
PS_LIMIT_BYTES = 1024 * 1024

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_IS_LINUX = sys.platform == "linux"
FIRST_PAUSE_S = 0.01 if _IS_LINUX else 0.05
"""The shortest wait between two looks at the process table: longer on macOS, where each look runs `ps`."""
LONGEST_PAUSE_S = 1.0
"""The longest wait between two such looks: each pause is twice as long as the one before."""


# --- what a process is told, and what it makes of itself --------------------------------------------------------------


def has_subreapers() -> bool:
    """Whether a process can adopt the orphans below it, so that `wait` says when none is left. Only Linux has this."""
    return _IS_LINUX


def become_subreaper() -> None:
    """Make orphans below this process its children. Does nothing where there are no subreapers."""
    if _IS_LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def close_to_others() -> None:
    """Keep other processes of this user from looking into this one, and have it continue when its parent ends.

    Somebody may have stopped this process, and the end of its parent is what it has to act on. On macOS this does
    nothing.
    """
    if _IS_LINUX:
        _prctl(_PR_SET_DUMPABLE, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def die_with(parent: int) -> None:
    """Have this process killed when its parent is killed, or end it now if `parent` is gone. Does nothing on macOS."""
    if _IS_LINUX:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before the kernel knew that we want to be told
            os._exit(127)


def _prctl(option: int, value: int) -> None:
    import ctypes  # takes milliseconds, and only Linux needs it

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def ask_to_end(pid: int) -> None:
    """Send TERM, and CONT so that a stopped process receives it."""
    send(pid, signal.SIGTERM)
    send(pid, signal.SIGCONT)


def send(pid: int, number: int) -> None:
    """Signal one process. A process that is gone or belongs to somebody else is no error."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def is_alive(pid: int) -> bool:
    """Whether a process has this id. One that has ended and was not waited for counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# --- the process table ------------------------------------------------------------------------------------------------


class Row:
    """One process: its id, parent and group, whether it has ended, and its start, which tells it from a later process.

    An id is used again once its process was waited for; an id together with a start is not.
    """

    __slots__ = ("ended", "group", "parent", "pid", "start")

    def __init__(self, pid: int, parent: int, group: int, state: str, start: str) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.ended = state.startswith("Z")
        self.start = start


def parse_proc_stat(text: str) -> Row:
    """Read /proc/PID/stat (proc(5)): the name in parentheses may itself hold spaces and parentheses."""
    pid = int(text[: text.index("(")])
    rest = text[text.rindex(")") + 2 :].split()
    return Row(pid, int(rest[1]), int(rest[2]), rest[0], rest[19])


def parse_ps(text: str) -> list[Row]:
    """Read `ps -A -o pid=,ppid=,pgid=,stat=,lstart=`. Raises `ValueError` for a line of any other form."""
    rows = []
    for line in text.splitlines():
        fields = line.split(None, 4)
        if len(fields) != 5:
            raise ValueError("not a line of ps")
        rows.append(Row(int(fields[0]), int(fields[1]), int(fields[2]), fields[3], fields[4].strip()))
    return rows


def scan() -> list[Row]:
    """Every process of this machine. Raises `OSError` or `ValueError` when that cannot be told."""
    return scan_proc() if _IS_LINUX else scan_ps()


def scan_proc() -> list[Row]:
    """Every process that /proc shows. Raises `OSError` when /proc cannot be read."""
    rows = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                    rows.append(parse_proc_stat(stat.read()))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked
    return rows


def check_ps(program: str = "/bin/ps") -> None:
    """Raise `OSError` unless `program` belongs to root and only root can have written it."""
    seen = os.stat(program)
    if seen.st_uid != 0 or seen.st_mode & 0o022:
        raise OSError(errno.EPERM, "ps")


def scan_ps(program: str = "/bin/ps") -> list[Row]:
    """Every process that `/bin/ps` shows, except that `ps` itself. Raises `OSError` or `ValueError`.

    A table that does not show this process is not believed.
    """
    check_ps(program)
    reading, writing = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_CLOSE, reading)]
    columns = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]
    try:
        pid = os.posix_spawn(program, columns, {"LC_ALL": "C"}, file_actions=actions)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        text = _read_within(reading, PS_WITHIN_S, PS_LIMIT_BYTES)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(reading)
        status = os.waitpid(pid, 0)[1]
    if os.waitstatus_to_exitcode(status) != 0:
        raise OSError(errno.EIO, "ps")
    rows = [row for row in parse_ps(text.decode("ascii", "replace")) if row.pid != pid]
    if all(row.pid != os.getpid() for row in rows):
        raise ValueError("not a table of this machine")
    return rows


def _read_within(descriptor: int, seconds: float, limit: int) -> bytes:
    """Everything up to the end of file. Raises `OSError` when it takes too long or is too much."""
    until = time.monotonic() + seconds
    said = b""
    while True:
        if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
            raise OSError(errno.ETIMEDOUT, "ps")
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return said
        said += chunk
        if len(said) > limit:
            raise OSError(errno.EFBIG, "ps")


def below(rows: list[Row], roots: set[int]) -> list[Row]:
    """The rows whose chain of parents leads to one of `roots`; the roots themselves are not among them."""
    children: dict[int, list[Row]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    found: list[Row] = []
    seen = set(roots)
    waiting = list(roots)
    while waiting:
        for row in children.get(waiting.pop(), ()):
            if row.pid not in seen:
                seen.add(row.pid)
                found.append(row)
                waiting.append(row.pid)
    return found


def family(pid: int) -> list[Row]:
    """The process and its descendants, without those that have ended. Raises `OSError` or `ValueError`."""
    rows = scan()
    return [row for row in [row for row in rows if row.pid == pid] + below(rows, {pid}) if not row.ended]


# --- the proof that a tree is gone ------------------------------------------------------------------------------------


class Tree:
    """What one child of ours has started, and the proof that nothing of it is left.

    With subreapers every orphan of the tree becomes our child, so `wait` failing with ECHILD is the proof. Without them
    the tree is the child's group and whatever the process table links to it by parents, as far as we saw it before its
    parents ended. `needs_scan` says that the table must agree that nothing is left.
    """

    def __init__(self, pid: int, *, needs_scan: bool) -> None:
        self.pid = pid
        self.status: int | None = None
        self.childless = False
        self.needs_scan = needs_scan
        self._known: dict[int, str] = {}

    def reap(self) -> None:
        """Collect every child that has ended, and remember the status of the first one."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status

    def look(self) -> list[int] | None:
        """The ids of the tree that are alive, or `None` when the table cannot be read now."""
        try:
            rows = scan()
        except (OSError, ValueError):
            return None
        alive = {row.pid: row.start for row in rows}
        roots = {os.getpid()} | {pid for pid, start in self._known.items() if alive.get(pid) == start}
        members = below(rows, roots)
        members += [row for row in rows if row.pid in roots or row.group == self.pid]
        self._known = {row.pid: row.start for row in members if row.pid != os.getpid()}
        # A process that has ended holds no descriptor, and only its parent can wait for it.
        return [row.pid for row in members if row.pid in self._known and not row.ended]

    def gone(self, alive: list[int] | None) -> bool:
        """Whether it is certain that nothing of the tree is alive; `alive` is what `look` gave."""
        return self.childless and (alive == [] or not self.needs_scan)
