"""Start of the program: `pi-session-mcp` and `python -m pi_session_mcp`.

Clients start `serve` and do not wait long for it, so `serve` imports nothing of the command line. It also drops what
environment variables put in front of the standard library and of our dependencies.
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
    """End at once with the command line's message. Nothing has been started yet, so nothing else has to be ended."""
    _take_no_signals()
    status, (code, sentence) = 128 + number, _WORDS[number]
    try:
        if "--json" in sys.argv:
            report = f'{{"schemaVersion": 1, "ok": false, "exitCode": {status}, "code": "{code}"}}\n'
            os.write(1, report.encode("ascii"))
        elif sys.argv[1:] != ["serve"]:
            os.write(2, f"pi-session-mcp: {sentence}\n".encode("ascii"))
    except OSError:
        pass  # standard error is closed, so the message is lost
    finally:
        os._exit(status)


def _leave_at_signals() -> None:
    for number in _WORDS:
        # Another setting means that our parent wants us to ignore the signal.
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            signal.signal(number, _leave)


def _take_no_signals() -> None:
    for number in _WORDS:
        signal.signal(number, signal.SIG_IGN)


# At import time and not in `main`: an interrupt during the imports below would print a trace with paths, or be lost.
_leave_at_signals()


def main() -> int:
    """Run the command in `sys.argv` and return its exit status. `serve` does not return."""
    status = _run(sys.argv[1:])
    _take_no_signals()  # an interrupt while the interpreter shuts down would print a trace
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
        sys.dont_write_bytecode = True  # doctor promises to write no file, and .pyc files are files
    from pi_session_mcp.cli.app import main as command_line

    return command_line()


def _shake_off_the_environment() -> None:
    """Undo what `PYTHON*` and `OTEL_*` variables did to the interpreter and would do to libraries.

    Imports would fail if warnings were errors, or if a tracer was named that is not installed. A module in `PYTHONPATH`
    or in the working directory that has the name of one of ours would be imported instead of it.
    """
    sys.path[:] = _own_path()
    # Without this limit, parsing one long number takes minutes.
    sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)
    if os.environ.get("PYTHONTRACEMALLOC"):
        import tracemalloc

        tracemalloc.stop()  # tracing makes our imports ten times as slow
    if "warnings" in sys.modules or sys.warnoptions:
        import warnings

        sys.warnoptions.clear()
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "1"  # looking for plugins takes longer than reading the configuration


def _own_path() -> list[str]:
    """`sys.path` without what the environment added to it."""
    path = sys.path
    if "-m" in sys.orig_argv[1:] and not sys.flags.safe_path:
        path = path[1:]  # the working directory
    named = os.environ.get("PYTHONPATH")
    if not named:
        return path[:]
    # An empty entry means the working directory.
    added = {os.path.abspath(entry) for entry in named.split(os.pathsep)} - _installed()
    return [entry for entry in path if entry not in added]


def _installed() -> set[str]:
    """Directories of this package and of Python. They stay on the path even if `PYTHONPATH` names them too."""
    import site

    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return {own, os.path.dirname(os.__file__), *site.getsitepackages(), site.getusersitepackages()}


if __name__ == "__main__":
    sys.exit(main())
