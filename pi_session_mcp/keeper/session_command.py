"""Runs one command of a session's `bash`, and owns what it leaves running until the session ends.

A program of its own, run by a Pi host as `python -I -S session_command.py SHELL ARGUMENT …`; `host/js/commands.mjs` is
its other side. The command's text is in the environment and not among the arguments: `pgrep -f` must not find us in
place of a program that the command runs.

- Descriptor 3: the host has the other end as long as the session lives. When it closes, we end everything.
- Descriptor 4: we say `started PID` or `failed ERRNO`, then `exited CODE`, with 128 + n for signal n. When it closes,
  nothing of the command is alive; if we had not said `exited` by then, we were killed.

The command leads a process group of its own. What it leaves running may go on, since a server that a model starts in
the background is of use to its next command. We exit once nothing is left, see `platform/processes.py`.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # importing `typing` takes a fifth of a start
if TYPE_CHECKING:
    from pi_session_mcp.keeper import program
    from pi_session_mcp.platform import processes
else:
    # With -I our package is not on the path. Our neighbour is, once we say where, and it finds the other module.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import program
    from program import processes

LIFELINE = 3
REPORT = 4
COMMAND = "PI_SESSION_MCP_COMMAND"
"""The variable with the command's text. The command itself does not get this variable."""
LOOK_AGAIN_S = 5.0
"""Between two looks at what a command has left: macOS has no event for the end of a process that is not our child."""


def main(shell: list[str]) -> int:
    """Run as the module's text says."""
    processes.close_to_others()
    for descriptor in (LIFELINE, REPORT):
        os.set_inheritable(descriptor, False)
    text = os.environ.pop(COMMAND)
    processes.become_subreaper()
    wakeups = program.Wakeups(LIFELINE)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores this signal, and the command would inherit that
    try:
        pid = program.start([*shell, text], [], held=-1, death_signal=False)
    except OSError as error:
        program.tell(REPORT, f"failed {error.errno}\n")
        return 0
    program.release_standard_streams()
    os.chdir("/")  # we may live for long, and must not keep a directory of the user's in use
    program.tell(REPORT, f"started {pid}\n")
    own(processes.Tree(pid, needs_scan=not processes.has_subreapers()), wakeups)
    return 0


def own(tree: processes.Tree, wakeups: program.Wakeups) -> None:
    """Return when nothing of the command is alive. If the session ends first, end it."""
    program.wait_for_end(tree, wakeups, 0.0)
    told = _tell_exit(tree)
    while not (wakeups.told_to_end or wakeups.let_go):
        tree.reap()
        alive = tree.look() if tree.needs_scan else None
        if tree.gone(alive):
            return
        wakeups.wait(LOOK_AGAIN_S if tree.needs_scan else None)
    program.end(tree, wakeups, REPORT)
    if not told:
        _tell_exit(tree)


def _tell_exit(tree: processes.Tree) -> bool:
    if tree.status is None:
        return False
    code = os.waitstatus_to_exitcode(tree.status)
    program.tell(REPORT, f"exited {code if code >= 0 else 128 - code}\n")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
