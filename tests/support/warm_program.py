"""Runs the command line in forked children of one process that has its imports: `python -m tests.support.warm_program`.

A start of Python and the imports cost more than most commands. For tests of what a command says and does; one of
signals, pipes, the interpreter's own variables or what is imported starts the program itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final, Self

from tests.support.powers import give_up_powers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT: Final = Path(__file__).parents[2]
NEEDED: Final = (
    "anyio._backends._asyncio",
    "pydantic_settings",
    "pi_session_mcp.__main__",
    "pi_session_mcp.cli.config_init",
    "pi_session_mcp.cli.examination",
    "pi_session_mcp.cli.program",
    "pi_session_mcp.cli.stage",
    "pi_session_mcp.config.environment",
)


@dataclass(frozen=True, slots=True)
class Said:
    """A command that ended."""

    code: int
    out: str
    err: str


class WarmProgram:
    """The process; one command at a time, each in a child of its own. `weak` holds permissions against it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_program"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, arguments: Iterable[str], environ: Mapping[str, str], cwd: Path, *, weak: bool = False) -> Said:
        """Run a command to its end, without standard input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"arguments": [*arguments], "environ": dict(environ), "cwd": str(cwd), "weak": weak}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return Said(**answer)


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
