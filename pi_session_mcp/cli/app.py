"""The outermost part of the command line: a caller always gets text and one exit status, and never a traceback."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.streams import OutputLostError, columns, form_of, write_err, write_out
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from pi_session_mcp.cli.outcome import Answer, Command

_SENTENCES: Final = {
    "interrupted": "Interrupted.",
    "terminated": "Ended by a signal.",
    "output_lost": "The output could not be written.",
    "internal_error": "The operation failed: an unexpected error in pi-session-mcp.",
}


_GROUPS: Final[tuple[list[str], ...]] = ([], ["config"], ["extensions"], ["runtime"])
"""A person who names no command wants the list of commands. With `--json` a program forgot the command: a misuse."""


class _Asked:
    """Whether SIGTERM came. It is raised as Ctrl-C is, so that cleanups have only one kind of interrupt to handle."""

    def __init__(self) -> None:
        self.to_terminate = False

    def listen(self) -> None:
        """From now on a signal raises, since there may be something to end. An ignored signal stays ignored."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
            signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.to_terminate = True
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a script's background command
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; text has been written by then.

    `arguments` are those after the program's name (`sys.argv[1:]` when left out). Never raises.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    asked = _Asked()
    warnings.simplefilter("ignore")
    sys.unraisablehook = _say_nothing
    try:
        command = _command(given)
        asked.listen()
        return _run(command, given)
    except KeyboardInterrupt:
        _be_deaf()
        if asked.to_terminate:
            return _fail(given, ExitStatus.TERMINATED, "terminated")
        return _fail(given, ExitStatus.INTERRUPTED, "interrupted")
    except OutputLostError:
        return _fail(given, ExitStatus.FAILURE, "output_lost")
    except Exception:  # noqa: BLE001 - the one boundary: a defect of ours must not show paths or values in a traceback
        return _fail(given, ExitStatus.FAILURE, "internal_error")


def _say_nothing(_unraisable: object) -> None:
    """Python would print what no code can catch, such as an interrupt in a finalizer, with the paths of a traceback."""


def _run(command: Command, arguments: list[str]) -> int:
    from pi_session_mcp.cli.progress import PersonStage, ReportStage
    from pi_session_mcp.cli.render import exit_status_of, json_report

    wants_report = _wants_report(arguments)
    answer = command(ReportStage() if wants_report else PersonStage())
    _leave_at_signals()
    if wants_report:
        write_out(json_report(answer))
    else:
        _tell(answer)
    return int(exit_status_of(answer))


def _command(arguments: list[str]) -> Command:
    if [argument for argument in arguments if argument != "--json"] == ["doctor"]:
        # Not through the grammar: the doctor must work when the module of another command is missing.
        from pi_session_mcp.cli.doctor_report import examine

        return examine
    text = _page([*arguments, "--help"] if arguments in _GROUPS else arguments)
    if text is not None:
        from pi_session_mcp.cli.outcome import Document

        page = Document(text, "help", ExitStatus.OK)
        return lambda _show: page
    from pi_session_mcp.cli.program import parse

    return parse(arguments)


def _page(arguments: list[str]) -> str | None:
    if not {"-h", "--help"}.intersection(arguments):
        return None
    from pi_session_mcp.cli.help_pages import page

    return page(arguments, columns(os.environ))


def _tell(answer: Answer) -> None:
    from pi_session_mcp.cli.outcome import Document, Misuse
    from pi_session_mcp.cli.render import human_text, misuse_text

    match answer:
        case Document(text=text):
            write_out(text)
        case Misuse():
            write_err(misuse_text(answer, form_of(sys.stderr, os.environ)))
        case _ if answer.blocks:
            write_out(human_text(answer.blocks, form_of(sys.stdout, os.environ)))


def _wants_report(arguments: list[str]) -> bool:
    """Whether the caller asked for JSON. This is decided before parsing, so that a usage error is JSON as well."""
    return "--json" in arguments


def _fail(arguments: list[str], status: ExitStatus, code: str) -> int:
    try:
        if _wants_report(arguments):
            from pi_session_mcp.cli.render import failure_report

            write_out(failure_report(status, code))
        else:
            write_err(f"pi-session-mcp: {_SENTENCES[code]}\n")
    except OutputLostError:
        write_err(f"pi-session-mcp: {_SENTENCES['output_lost']}\n")
    return int(status)


def _leave_at_signals() -> None:
    """From now on a signal ends the process at once: the answer exists, and its reader may be slow."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: os._exit(128 + number))


def _be_deaf() -> None:
    """Ignore further signals: the program is ending already, and a second signal must not interrupt its last words."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
