"""Runs the command line in forked children of one process that has its imports: `python -m tests.support.warm_program`.

A start of Python and the imports cost more than most commands. For tests of what a command says and does; one of
signals, pipes, the interpreter's own variables or what is imported starts the program itself.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final

from tests.support.asked_process import AskedProcess
from tests.support.powers import give_up_powers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

NEEDED: Final = (
    "anyio._backends._asyncio",
    "pydantic_settings",
    "pi_session_mcp.__main__",
    "pi_session_mcp.cli.config_init",
    "pi_session_mcp.cli.doctor_report",
    "pi_session_mcp.cli.program",
    "pi_session_mcp.cli.progress",
    "pi_session_mcp.config.operator_environment",
)


@dataclass(frozen=True, slots=True)
class Said:
    """A command that ended."""

    code: int
    out: str
    err: str


class WarmProgram(AskedProcess):
    """The process; one command at a time, each in a child of its own. `weak` holds permissions against it."""

    def __init__(self) -> None:
        super().__init__("tests.support.warm_program")

    def run(self, arguments: Iterable[str], environ: Mapping[str, str], cwd: Path, *, weak: bool = False) -> Said:
        """Run a command to its end, without standard input."""
        self.begin({"arguments": [*arguments], "environ": dict(environ), "cwd": str(cwd), "weak": weak})
        return Said(**self.end())


def _in_child(request: Mapping[str, Any]) -> Said:
    with TemporaryFile() as out, TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            _become(request, out.fileno(), err.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        err.seek(0)
        return Said(status, out.read().decode(), err.read().decode())


def _become(request: Mapping[str, Any], out: int, err: int) -> None:
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        for ours, its in ((null, 0), (out, 1), (err, 2)):
            os.dup2(ours, its)
        os.environ.clear()
        os.environ.update(request["environ"])
        os.chdir(request["cwd"])
        if request["weak"]:
            give_up_powers()
        sys.argv[:] = ["pi-session-mcp", *request["arguments"]]
        code = _main()
    except BaseException:  # noqa: BLE001 - the test sees it on standard error
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _main() -> int:
    from pi_session_mcp.__main__ import main

    return main()


def main() -> None:
    """Answer requests until the end of the input."""
    for name in NEEDED:
        import_module(name)
    for line in sys.stdin:
        said = _in_child(json.loads(line))
        sys.stdout.write(json.dumps({"code": said.code, "out": said.out, "err": said.err}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
