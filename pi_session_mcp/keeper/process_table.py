"""Which processes there are, and whose children they are. Standard library only: the keeper's programs read it too."""

from __future__ import annotations

import errno
import os
import select
import signal
import time

PS_WITHIN_S = 2.0
PS_LIMIT_BYTES = 1024 * 1024


class Row:
    """One process: its id, parent, group, whether it has ended, and a text that tells it from a later one."""

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
    """Raise `OSError` unless `program` is root's and nobody else can have written it."""
    seen = os.stat(program)
    if seen.st_uid != 0 or seen.st_mode & 0o022:
        raise OSError(errno.EPERM, "ps")


def scan_ps(program: str = "/bin/ps") -> list[Row]:
    """Every process that `/bin/ps` shows, but for that `ps`. Raises `OSError` or `ValueError`.

    A table without us in it is not believed.
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
    """Everything up to the end of file. Raises `OSError` when that takes longer or is more."""
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
