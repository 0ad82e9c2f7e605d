"""Start of the program: `pi-session-mcp` and `python -m pi_session_mcp`.

What a client starts, `serve`, takes the short way: it imports nothing of the command line, and nothing that somebody's
variables put in the way of the standard library or of our dependencies.
"""

from __future__ import annotations

import os
import sys

try:
    import signal
except KeyboardInterrupt:
    os._exit(130)

_WORDS: dict[int, tuple[str, str]] = {
    signal.SIGINT: ("interrupted", "Interrupted."),
    signal.SIGTERM: ("terminated", "Ended by a signal."),
}


def _leave(number: int, _frame: object) -> None:
    """End at once, in the words of the command line: nothing has begun, so there is nothing to end but us."""
    _take_no_signals()
    status, (code, sentence) = 128 + number, _WORDS[number]
    try:
        if "--json" in sys.argv:
            report = f'{{"schemaVersion": 1, "ok": false, "exitCode": {status}, "code": "{code}"}}\n'
            os.write(1, report.encode("ascii"))
        elif sys.argv[1:] != ["serve"]:
            os.write(2, f"pi-session-mcp: {sentence}\n".encode("ascii"))
    except OSError:
        pass  # nobody is there to be told
    finally:
        os._exit(status)


def _leave_at_signals() -> None:
    for number in _WORDS:
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:  # else we are to ignore it
            signal.signal(number, _leave)


def _take_no_signals() -> None:
    for number in _WORDS:
        signal.signal(number, signal.SIG_IGN)


# An interrupt amid imports would show paths, or be lost. Not in `main`: who calls that has lines of its own before.
_leave_at_signals()


def main() -> int:
    """Run the command in `sys.argv` and return its exit status. `serve` does not return."""
    status = _run(sys.argv[1:])
    _take_no_signals()  # all is said, and an interrupt of the interpreter's own end would show
    return status


def _run(arguments: list[str]) -> int:
    if arguments == ["serve"]:
        _shake_off_the_environment()
        from pi_session_mcp.server.main import run

        run()
    if arguments == ["--version"]:
        from pi_session_mcp import __version__
        from pi_session_mcp.cli.streams import OutputLostError, write_out

        try:
            write_out(f"pi-session-mcp {__version__}\n")
        except OutputLostError:
            return 1
        return 0
    if arguments[:1] == ["doctor"]:
        sys.dont_write_bytecode = True  # it promises to write nothing, and that is a file as well
    from pi_session_mcp.cli.app import main as command_line

    return command_line()


def _shake_off_the_environment() -> None:
    """Undo what `PYTHON*` and `OTEL_*` variables did to the interpreter and would do to libraries.

    A warning made an error, or a tracer that is not installed, would end an import; a module of the same name in
    `PYTHONPATH` or in the working directory would be taken for ours.
    """
    sys.path[:] = _own_path()
    sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)  # or one number stops us for minutes
    if os.environ.get("PYTHONTRACEMALLOC"):
        import tracemalloc

        tracemalloc.stop()  # with it, our imports take ten times as long
    if "warnings" in sys.modules or sys.warnoptions:
        import warnings

        sys.warnoptions.clear()
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]


def _own_path() -> list[str]:
    """`sys.path` without what the environment added to it."""
    path = sys.path
    if "-m" in sys.orig_argv[1:] and not sys.flags.safe_path:
        path = path[1:]  # the working directory
    named = os.environ.get("PYTHONPATH")
    if not named:
        return path[:]
    # An empty entry is the working directory, too.
    added = {os.path.abspath(entry) for entry in named.split(os.pathsep)} - _installed()
    return [entry for entry in path if entry not in added]


def _installed() -> set[str]:
    """Directories that are ours or Python's, whoever else names them."""
    import site

    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return {own, os.path.dirname(os.__file__), *site.getsitepackages(), site.getusersitepackages()}


if __name__ == "__main__":
    sys.exit(main())
