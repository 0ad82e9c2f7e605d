"""What every command line keeps, whatever happens inside: one exit code, one report, no traceback."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp import __version__
from pi_session_mcp.cli.outcome import Misuse
from pi_session_mcp.cli.program import parse
from pi_session_mcp.cli.progress import ReportStage
from pi_session_mcp.cli.render import json_report

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Shell

MISUSES = [
    (),
    ("frobnicate",),
    ("--frobnicate",),
    ("config",),
    ("config", "chk"),
    ("config", "check", "--frobnicate"),
    ("config", "check", "surplus"),
    ("config", "schema", "surplus"),
    ("runtime",),
    ("runtime", "frobnicate"),
    ("demo", "surplus"),
    ("serve", "surplus"),
    ("\x1b]0;hi\x07\udcff",),
]


def test_misuse_exits_with_64_and_says_so_on_stderr(shell: Shell) -> None:
    ended = shell.run("--frobnicate", "\x1b]0;hi\x07\udcff")

    assert (ended.code, ended.out) == (64, "")
    assert "--help" in ended.err
    assert not set(ended.err) & set("\x1b\x07")


def test_misuse_with_json_is_one_object_on_stdout_whatever_the_environment_says(shell: Shell) -> None:
    environment = {"FORCE_COLOR": "3", "PYTHONWARNINGS": "default", "COLUMNS": "1", "NODE_OPTIONS": "--frobnicate"}
    ended = shell.run("config", "chk", "--json", env=environment)

    report = json.loads(ended.out)
    assert ended.code == report["exitCode"] == 64
    assert (report["schemaVersion"], report["ok"], report["code"]) == (1, False, "usage")
    assert ended.out.count("\n") == 1
    assert "\x1b" not in ended.out
    assert ended.err == ""


@pytest.mark.parametrize("arguments", MISUSES, ids=repr)
@pytest.mark.parametrize("more", [(), ("--json",)], ids=repr)
def test_every_misuse_names_the_valid_names_and_never_the_word_that_was_given(
    arguments: tuple[str, ...], more: tuple[str, ...]
) -> None:
    answer = parse([*arguments, *more])(ReportStage())

    assert isinstance(answer, Misuse)
    assert answer.valid
    assert "frobnicate" not in json_report(answer)


def test_an_unknown_command_names_the_known_ones(shell: Shell) -> None:
    assert "config, demo, doctor, extensions, runtime, serve" in " ".join(shell.run("doctr").err.split())
    assert "check, init, schema" in shell.run("config", "chk").err
    assert "install, status" in shell.run("runtime", "x").err


@pytest.mark.parametrize("path", [(), ("serve",), ("demo",), ("config",), ("config", "check"), ("runtime", "install")])
def test_every_help_text_has_an_example_and_fits_into_40_columns(shell: Shell, path: tuple[str, ...]) -> None:
    ended = shell.run(*path, "--help", env={"COLUMNS": "40"})

    assert (ended.code, ended.err) == (0, "")
    assert "Example:" in ended.out
    assert max(len(line.rstrip()) for line in ended.out.splitlines()) <= 40


def test_help_and_version_are_reports_with_json(shell: Shell) -> None:
    assert json.loads(shell.run("--version", "--json").out)["version"] == __version__
    assert json.loads(shell.run("config", "check", "--json", "--help").out)["help"].startswith("Usage:")


def test_version_is_the_packages_version(shell: Shell) -> None:
    ended = shell.run("--version")

    assert (ended.code, ended.out, ended.err) == (0, f"pi-session-mcp {__version__}\n", "")


def test_help_loads_neither_rich_nor_the_mcp_sdk_nor_the_configuration(shell: Shell) -> None:
    code = (
        "import sys\nfrom pi_session_mcp.cli.app import main\nmain(['--help'])\n"
        "heavy = {'rich', 'mcp', 'pydantic', 'asyncio', 'anyio'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env=shell.environment(), capture_output=True, timeout=60, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, b"")


def _with_fault(raised: str) -> list[str]:
    """A command line whose `demo` command raises, to see what the boundary makes of it."""
    code = (
        "import sys\nimport pi_session_mcp.cli.demo as demo\nfrom pi_session_mcp.cli.app import main\n"
        f"def broken(show):\n    {raised}\ndemo._run = broken\nsys.exit(main())"
    )
    return [sys.executable, "-c", code, "demo"]


def test_an_unexpected_error_is_one_line_without_its_text_and_exit_1(shell: Shell) -> None:
    argv = _with_fault("raise RuntimeError('CANARY /home/somebody')")

    told = subprocess.run(argv, env=shell.environment(), capture_output=True, text=True, timeout=60, check=False)
    reported = subprocess.run(
        [*argv, "--json"], env=shell.environment(), capture_output=True, text=True, timeout=60, check=False
    )

    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.count("\n") == 1
    assert json.loads(reported.stdout) == {"schemaVersion": 1, "ok": False, "exitCode": 1, "code": "internal_error"}
    assert "CANARY" not in told.stderr + reported.stdout + reported.stderr


@pytest.mark.parametrize(
    ("number", "status", "code"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
@pytest.mark.parametrize("report", [True, False])
def test_a_signal_ends_a_command_with_its_status(
    shell: Shell,
    number: signal.Signals,
    status: int,
    code: str,
    report: bool,  # noqa: FBT001
) -> None:
    argv = _with_fault("import os; os.write(2, b'.'); signal = __import__('signal'); signal.pause()")
    with subprocess.Popen(
        [*argv, "--json"] if report else argv,
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as child:
        assert child.stderr is not None
        assert child.stderr.read(1) == b"."
        child.send_signal(number)
        out, err = child.communicate(timeout=60)

    assert child.returncode == status
    if report:
        assert json.loads(out) == {"schemaVersion": 1, "ok": False, "exitCode": status, "code": code}
        assert err == b""
    else:
        assert out == b""
        assert err.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("config", "check", "--json"), ("config", "check")])
def test_a_reader_that_leaves_changes_neither_the_exit_code_nor_stderr(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    expected = shell.run(*arguments)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            shell.argv(*arguments),
            cwd=shell.home,
            env=shell.environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)

    assert (ended.returncode, ended.stderr) == (expected.code, b"")


def test_a_closed_stdout_is_no_traceback(shell: Shell) -> None:
    command = ["sh", "-c", '"$@" >&-', "sh", *shell.argv("--help")]
    ended = subprocess.run(command, env=shell.environment(), stderr=subprocess.PIPE, timeout=60, check=False)

    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_was_lost_is_a_failure_in_one_line(shell: Shell) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            shell.argv("--help"), env=shell.environment(), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )

    assert ended.returncode == 1
    assert ended.stderr == b"pi-session-mcp: The output could not be written.\n"


def test_output_in_a_c_locale_is_text_without_a_traceback(shell: Shell) -> None:
    ended = shell.run("frobnicate", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})

    assert ended.code == 64
    assert ended.err.isascii()
    assert ended.err.startswith("x misuse")


def _on_a_terminal(shell: Shell, env: dict[str, str]) -> str:
    """What a misused command line shows on a terminal of its own."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            shell.argv("frobnicate"),
            env=shell.environment(env),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            check=False,
        )
    finally:
        os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # Linux tells the end of a terminal's other side as an input/output error
        pass
    finally:
        os.close(ours)
    return shown.decode()


def test_a_terminal_gets_colour_unless_no_color_is_set(shell: Shell) -> None:
    assert "\x1b[" in _on_a_terminal(shell, {"TERM": "xterm"})
    assert "\x1b[" not in _on_a_terminal(shell, {"TERM": "xterm", "NO_COLOR": "1"})
    assert "\x1b[" not in _on_a_terminal(shell, {"TERM": "dumb"})


def test_a_spinner_on_the_terminal_stays_out_of_the_report(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    try:
        ended = subprocess.run(
            shell.argv("runtime", "status", "--json"),
            cwd=shell.home,
            env=shell.environment({"TERM": "xterm"}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=60,
            check=False,
        )
    finally:
        os.close(theirs)
    shown = os.read(ours, 4096)
    os.close(ours)

    assert b"Looking for Node" in shown
    assert json.loads(ended.stdout)["exitCode"] == ended.returncode
    assert b"\x1b" not in ended.stdout


def test_a_pipe_gets_no_colour_whatever_force_color_says(shell: Shell) -> None:
    assert "\x1b" not in shell.run("frobnicate", env={"FORCE_COLOR": "3", "TERM": "xterm"}).err
