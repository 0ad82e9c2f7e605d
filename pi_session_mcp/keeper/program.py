"""The keeper: runs one command, and when it ends or we lose our owner, ends everything that the command started.

A program of its own, run as `python -I -S program.py LIFELINE REPORT GRACE_MS DEATH_SIGNAL HELD FD=FD,… -- COMMAND …`.
So it knows only the standard library and nothing of this package. `keeper/kept.py` is its other side.

- LIFELINE: a pipe whose other end only the owner holds. Its end of file means that the owner is gone or has let go.
- REPORT: a pipe that we write to: `started PID GROUP START`, or `failed ERRNO`; at the end `ended STATUS`, where STATUS
  is what `wait` gave. Its end of file means that we are gone; without `ended` before it, we were killed. A guardian
  also says `unknown`, see below.
- GRACE_MS: how long the command may take to end by itself after the lifeline closed.
- DEATH_SIGNAL: 1 if the command must not outlive us even if we are killed (Linux), else 0.
- HELD: a descriptor of ours that stays open until nothing of the tree is alive, or -1. With one we are a guardian: the
  descriptor is a lock's, and it goes with our end. So the kernel's word that we have no child is not enough, a scan of
  the process table must agree; one must succeed before the command is started; and when the table cannot be read for
  2 s we say `unknown`, keep the lock and go on.
- FD=FD: the command's descriptor = ours; our copy is closed, or nobody would ever see its end of file. `-` for none.

No process of the same user can look into us (prctl(2), PR_SET_DUMPABLE; macOS has no /proc to do it by).

Anybody of the same user may stop us, or what we run. So whatever is told to end is told to go on as well (CONT), and on
Linux the kernel tells us to go on when our owner dies.

On Linux we are a child subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): whatever loses its parent in our tree becomes
our child. So `wait` failing with ECHILD proves that nothing of the tree is alive. macOS has no such thing: there the
tree is the command's group and what `/bin/ps` links to it by parents, as far as we saw it before its parents died.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time

TERM_TO_KILL_S = 0.1
LONGEST_PAUSE_S = 1.0
UNKNOWN_AFTER_S = 2.0
PS_WITHIN_S = 2.0
PS_LIMIT_BYTES = 1024 * 1024

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_IS_LINUX = sys.platform == "linux"
CAN_ADOPT = _IS_LINUX
FIRST_PAUSE_S = 0.01 if _IS_LINUX else 0.05  # a scan by ps costs more


def prctl(option: int, value: int) -> None:
    """Call prctl(2). Raises `OSError`."""
    import ctypes  # costs milliseconds, and only Linux needs it

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def has_subreapers() -> bool:
    """Whether orphans below this process can become its children, so that `wait` says when none is left."""
    return _IS_LINUX


def become_subreaper() -> None:
    """Make orphans below this process its children (Linux; elsewhere nothing happens)."""
    if _IS_LINUX:
        prctl(_PR_SET_CHILD_SUBREAPER, 1)


# --- the process table ----------------------------------------------------------------------------------------------


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


def scan() -> list[Row]:
    """Every process of this machine. Raises `OSError` or `ValueError` when that cannot be told."""
    return scan_proc() if _IS_LINUX else scan_ps()


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


def ask_to_end(pid: int) -> None:
    """Send TERM, and CONT so that a stopped process takes it."""
    send(pid, signal.SIGTERM)
    send(pid, signal.SIGCONT)


def send(pid: int, number: int) -> None:
    """Signal one process; one that is gone, or not ours, is fine."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


# --- the tree of one command ----------------------------------------------------------------------------------------


class Tree:
    """What the command has started, and how it is ended for certain."""

    def __init__(self, pid: int, *, needs_scan: bool) -> None:
        self.pid = pid
        self.status: int | None = None
        self.childless = False
        self.needs_scan = needs_scan
        self._known: dict[int, str] = {}

    def reap(self) -> None:
        """Collect every child that has ended, and remember the command's status."""
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
        """The ids that are alive, or `None` when that cannot be told now."""
        try:
            rows = scan()
        except (OSError, ValueError):
            return None
        alive = {row.pid: row.start for row in rows}
        roots = {os.getpid()} | {pid for pid, start in self._known.items() if alive.get(pid) == start}
        members = below(rows, roots)
        members += [row for row in rows if row.pid in roots or row.group == self.pid]
        self._known = {row.pid: row.start for row in members if row.pid != os.getpid()}
        # One that has ended holds no descriptor, and it is not ours to reap unless it is our child.
        return [row.pid for row in members if row.pid in self._known and not row.ended]

    def gone(self, alive: list[int] | None) -> bool:
        """Whether it is certain that nothing of the tree is alive."""
        return self.childless and (alive == [] or not self.needs_scan)


class Wakeups:
    """Lets the loop sleep until a signal or the lifeline wakes it."""

    def __init__(self, lifeline: int) -> None:
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self.told_to_end = False
        self.told_to_ask = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGUSR1, self._ask)
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        self._lifeline: int | None = lifeline

    def _end(self, *_: object) -> None:
        self.told_to_end = True

    def _ask(self, *_: object) -> None:
        self.told_to_ask = True

    @property
    def let_go(self) -> bool:
        """Whether the lifeline has closed."""
        return self._lifeline is None

    def wait(self, seconds: float | None) -> None:
        """Sleep until something happened, or for `seconds`."""
        watched = [self._reading] if self._lifeline is None else [self._reading, self._lifeline]
        ready = select.select(watched, [], [], seconds)[0]
        if self._reading in ready:
            try:
                while os.read(self._reading, 512):
                    pass
            except BlockingIOError:
                pass
        if self._lifeline in ready and self._lifeline is not None and not os.read(self._lifeline, 512):
            os.close(self._lifeline)
            self._lifeline = None


def start(command: list[str], moved: list[tuple[int, int]], *, held: int, death_signal: bool) -> int:
    """Start the command in a group of its own, with `moved` (its descriptor, ours). Raises `OSError` if it cannot."""
    reading, writing = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(command, moved, writing, keeper, death_signal=death_signal)
    os.close(writing)
    with os.fdopen(reading, "rb") as failed:
        number = failed.read()
    for _, ours in moved:
        if ours != held:
            os.close(ours)
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), "exec")
    return pid


def _become(command: list[str], moved: list[tuple[int, int]], failed: int, keeper: int, *, death_signal: bool) -> None:
    """In the forked child: turn into the command, or write the errno to `failed`."""
    try:
        os.setpgid(0, 0)
        if death_signal and _IS_LINUX:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:  # it was killed before there was a signal to send
                os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        for theirs, ours in moved:
            if theirs == ours:
                os.set_inheritable(ours, True)
            else:
                os.dup2(ours, theirs, inheritable=True)
        os.execvpe(command[0], command, os.environ)
    except OSError as error:
        os.write(failed, str(error.errno or errno.EIO).encode())
    except BaseException:  # noqa: BLE001 - a forked child must never return into the parent's code
        os.write(failed, str(errno.EIO).encode())
    os._exit(127)


def wait_for_end(tree: Tree, wakeups: Wakeups, grace_s: float) -> None:
    """Return when the command has ended, when we are told to end, or when the grace after the lifeline has passed.

    Told to ask (USR1), send TERM to the whole tree and go on waiting: our owner decides how long it may take over it.
    """
    ends_at: float | None = None
    while tree.status is None and not wakeups.told_to_end:
        if wakeups.told_to_ask:
            wakeups.told_to_ask = False
            for pid in tree.look() or ():
                ask_to_end(pid)
        if wakeups.let_go and ends_at is None:
            for pid in tree.look() or ():  # macOS: see the tree while its parents live
                send(pid, signal.SIGCONT)  # a stopped process could not use its grace
            ends_at = time.monotonic() + grace_s
        left = None if ends_at is None else ends_at - time.monotonic()
        if left is not None and left <= 0:
            return
        wakeups.wait(left)
        tree.reap()


def end(tree: Tree, wakeups: Wakeups, report: int) -> None:
    """TERM, then KILL, until it is certain that nothing of the tree is alive."""
    seen_at = time.monotonic()
    told = False
    alive = tree.look()
    tree.reap()
    if tree.gone(alive):
        return
    for pid in alive or ():
        ask_to_end(pid)
    _pause(tree, wakeups, TERM_TO_KILL_S)
    pause_s = FIRST_PAUSE_S
    while True:
        tree.reap()
        alive = tree.look() if tree.needs_scan or not tree.childless else []
        if tree.gone(alive):
            return
        for pid in alive or ():
            send(pid, signal.SIGKILL)
        if alive is not None:
            seen_at = time.monotonic()
        elif tree.needs_scan and not told and time.monotonic() - seen_at >= UNKNOWN_AFTER_S:
            told = True
            tell(report, "unknown\n")
        _pause(tree, wakeups, pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def _pause(tree: Tree, wakeups: Wakeups, seconds: float) -> None:
    """Let `seconds` pass, or less if the last child ends before and that is all that we wait for."""
    until = time.monotonic() + seconds
    tree.reap()
    while (tree.needs_scan or not tree.childless) and (left := until - time.monotonic()) > 0:
        had_child = not tree.childless
        wakeups.wait(left)
        tree.reap()
        if tree.childless and had_child:
            return  # the next scan may be the last


def can_see() -> bool:
    """Whether the process table can be read, within the time that we would wait for it at the end."""
    until = time.monotonic() + UNKNOWN_AFTER_S
    while True:
        try:
            scan()
        except (OSError, ValueError):
            if time.monotonic() >= until:
                return False
            time.sleep(FIRST_PAUSE_S)
        else:
            return True


def main(arguments: list[str]) -> int:
    """Run as the module says; the exit status is the command's, or 128 + n for signal n."""
    if _IS_LINUX:
        prctl(_PR_SET_DUMPABLE, 0)  # what we start must not reach our descriptors through /proc
    lifeline, report, grace_ms, death_signal, held = (int(word) for word in arguments[:5])
    moved = [] if arguments[5] == "-" else [_pair(word) for word in arguments[5].split(",")]
    for descriptor in (lifeline, report, *(ours for _, ours in moved), *([held] if held >= 0 else [])):
        os.set_inheritable(descriptor, False)
    if os.getsid(0) != os.getpid():
        os.setsid()
    become_subreaper()
    if _IS_LINUX:
        prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)  # nothing, unless we are stopped
    wakeups = Wakeups(lifeline)
    if held >= 0 and not can_see():
        tell(report, "unknown\n")
        return 127
    try:
        pid = start(arguments[7:], moved, held=held, death_signal=death_signal == 1)
    except OSError as error:
        os.write(report, f"failed {error.errno}\n".encode())
        return 127
    release_standard_streams()
    tree = Tree(pid, needs_scan=held >= 0 or not _IS_LINUX)
    tell(report, f"started {pid} {pid} {_start_of(pid)}\n")
    wait_for_end(tree, wakeups, grace_ms / 1000)
    end(tree, wakeups, report)
    status = tree.status if tree.status is not None else 0
    tell(report, f"ended {status}\n")
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def tell(report: int, line: str) -> None:
    try:
        os.write(report, line.encode())
    except BrokenPipeError:
        pass  # the owner is gone; the work goes on


def _pair(word: str) -> tuple[int, int]:
    theirs, ours = word.split("=")
    return int(theirs), int(ours)


def _start_of(pid: int) -> str:
    try:
        return next((row.start.replace(" ", "_") for row in scan() if row.pid == pid), "-")
    except (OSError, ValueError):
        return "-"


def release_standard_streams() -> None:
    """Put /dev/null in place of our copies of the command's streams, or nobody would see their end of file."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
