"""The keeper: runs one command. When the command ends, or our owner does, it ends all that the command has started.

A program of its own, run as `python -I -S program.py LIFELINE REPORT GRACE_MS DEATH_SIGNAL HELD FD=FD,… -- COMMAND …`.
So it imports the standard library and `platform/processes.py`, and nothing else. `keeper/child.py` is its other side.

- LIFELINE: a pipe whose other end only the owner has. When we read its end, the owner is gone or has let go.
- REPORT: a pipe that we write to: `started PID GROUP START`, or `failed ERRNO`; at the end `ended STATUS`, where STATUS
  is what `wait` gave. When its reader sees the end of it without `ended`, we were killed. A guardian also says
  `unknown`, see below.
- GRACE_MS: how long the command may take to end by itself after the lifeline has closed.
- DEATH_SIGNAL: 1 if the kernel is to kill the command when we are killed (Linux), else 0.
- HELD: a descriptor of ours that stays open until nothing of the tree is alive, or -1. With it we are a guardian: the
  descriptor is that of a lock, which becomes free when we exit. So it is not enough that the kernel says that we have
  no child. A scan of the process table must agree, and one must succeed before the command is started. When the table
  cannot be read for 2 s, we say `unknown`, keep the lock and go on.
- FD=FD: the command's descriptor, and ours, which we close: otherwise its reader would never see the end. `-` for none.

No process of this user can read our memory or take our descriptors (prctl(2), PR_SET_DUMPABLE; macOS has no /proc).

Any process of this user can stop us, or what we run. So each process that is told to end is also told to continue
(CONT), and on Linux the kernel tells us to continue when our owner dies.

`platform/processes.py` says how it is known that nothing of the tree is left.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing `typing` takes a fifth of a keeper's start
if TYPE_CHECKING or __package__:
    from pi_session_mcp.platform import processes
else:
    # With -I our package is not on the path, and this one module is all that we need of it.
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "platform"))
    import processes

TERM_TO_KILL_S = 0.1
"""After TERM, what is left of the tree may take this long to end by itself. Then it is killed."""
UNKNOWN_AFTER_S = 2.0
"""A process table that could not be read for this long counts as unreadable, and the owner is told."""


class Wakeups:
    """Lets the keeper sleep until a signal comes or the lifeline closes."""

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
        if death_signal:
            processes.die_with(keeper)
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


def wait_for_end(tree: processes.Tree, wakeups: Wakeups, grace_s: float) -> None:
    """Return when the command has ended, when we are told to end, or when the grace after the lifeline has passed.

    USR1 tells us to send TERM to the whole tree and to go on waiting: our owner decides how long the tree may take.
    """
    ends_at: float | None = None
    while tree.status is None and not wakeups.told_to_end:
        if wakeups.told_to_ask:
            wakeups.told_to_ask = False
            for pid in tree.look() or ():
                processes.ask_to_end(pid)
        if wakeups.let_go and ends_at is None:
            for pid in tree.look() or ():  # on macOS the tree can be seen only while its parents live
                processes.send(pid, signal.SIGCONT)  # a stopped process could not use its grace
            ends_at = time.monotonic() + grace_s
        left = None if ends_at is None else ends_at - time.monotonic()
        if left is not None and left <= 0:
            return
        wakeups.wait(left)
        tree.reap()


def end(tree: processes.Tree, wakeups: Wakeups, report: int) -> None:
    """Send TERM, then KILL, until it is certain that nothing of the tree is alive."""
    seen_at = time.monotonic()
    told = False
    alive = tree.look()
    tree.reap()
    if tree.gone(alive):
        return
    for pid in alive or ():
        processes.ask_to_end(pid)
    _pause(tree, wakeups, TERM_TO_KILL_S)
    pause_s = processes.FIRST_PAUSE_S
    while True:
        tree.reap()
        alive = tree.look() if tree.needs_scan or not tree.childless else []
        if tree.gone(alive):
            return
        for pid in alive or ():
            processes.send(pid, signal.SIGKILL)
        if alive is not None:
            seen_at = time.monotonic()
        elif tree.needs_scan and not told and time.monotonic() - seen_at >= UNKNOWN_AFTER_S:
            told = True
            tell(report, "unknown\n")
        _pause(tree, wakeups, pause_s)
        pause_s = min(pause_s * 2, processes.LONGEST_PAUSE_S)


def _pause(tree: processes.Tree, wakeups: Wakeups, seconds: float) -> None:
    """Wait for `seconds`, or until the last child has ended."""
    until = time.monotonic() + seconds
    tree.reap()
    while (tree.needs_scan or not tree.childless) and (left := until - time.monotonic()) > 0:
        had_child = not tree.childless
        wakeups.wait(left)
        tree.reap()
        if tree.childless and had_child:
            return  # a scan may prove now that nothing is left


def can_see() -> bool:
    """Whether the process table can be read. Tries for as long as it would at the end."""
    until = time.monotonic() + UNKNOWN_AFTER_S
    while True:
        try:
            processes.scan()
        except (OSError, ValueError):
            if time.monotonic() >= until:
                return False
            time.sleep(processes.FIRST_PAUSE_S)
        else:
            return True


def main(arguments: list[str]) -> int:
    """Run as the module's text says. The exit status is the command's, or 128 + n when signal n ended it."""
    processes.close_to_others()
    lifeline, report, grace_ms, death_signal, held = (int(word) for word in arguments[:5])
    moved = [] if arguments[5] == "-" else [_pair(word) for word in arguments[5].split(",")]
    for descriptor in (lifeline, report, *(ours for _, ours in moved), *([held] if held >= 0 else [])):
        os.set_inheritable(descriptor, False)
    if os.getsid(0) != os.getpid():
        os.setsid()
    processes.become_subreaper()
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
    tree = processes.Tree(pid, needs_scan=held >= 0 or not processes.has_subreapers())
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
        return next((row.start.replace(" ", "_") for row in processes.scan() if row.pid == pid), "-")
    except (OSError, ValueError):
        return "-"


def release_standard_streams() -> None:
    """Put /dev/null in place of our copies of the command's streams: their readers would never see the end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
