"""Completions: what they name, and what the real shells make of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.program import build
from pi_session_mcp.setup.targets import ALL_TARGETS
from tests.support.terminal import Terminal
from tests.unit.cli.conftest import Shell
from tools.completions import DIRECTORY, files

ROOT: Final = Path(__file__).parents[3]
LIMIT_S: Final = 30
SCRIPTS: Final = {file.path: file.text for file in files()}
FILES: Final = {
    "bash": DIRECTORY / "pi-session-mcp.bash",
    "fish": DIRECTORY / "pi-session-mcp.fish",
    "zsh": DIRECTORY / "_pi-session-mcp",
}
ECHOING: Final = "pi-session-mcp() { printf '%s<%s>\\n' GOT \"$*\"; }"
"""Instead of the program: tells what it would have been given, in words that the typed line does not have."""
TYPED: Final = [
    ("pi-session-mcp ext", "extensions"),
    ("pi-session-mcp runtime inst", "runtime install"),
    ("pi-session-mcp setup --app", "setup --apply"),
    ("pi-session-mcp setup --apply cod", "setup --apply codex:user"),
    ("pi-session-mcp setup claude-code:u", "setup claude-code:user"),
    ("pi-session-mcp config init --thinking-level xh", "config init --thinking-level xhigh"),
]


def needed(shell: str) -> str:
    """The shell's program; the test is skipped on a machine without it, unless that machine is to run everything."""
    program = shutil.which(shell)
    if program is None and os.environ.get("CI"):
        pytest.fail(f"{shell} is not installed, and this run must try every shell")
    if program is None:
        pytest.skip(f"{shell} is not installed on this machine")
    return program


@pytest.mark.parametrize("shell", FILES)
def test_a_script_names_every_command_option_and_target(shell: str) -> None:
    script = SCRIPTS[FILES[shell]]
    root = read(build())

    for node in root.walk():
        assert not node.path or node.path[-1] in script
        assert all(option.name.removeprefix("--") in script for option in node.options)
    assert all(target.short.replace(":", "\\:" if shell == "zsh" else ":") in script for target in ALL_TARGETS)


@pytest.mark.parametrize("shell", FILES)
def test_the_real_shell_accepts_the_script(shell: str) -> None:
    checked = subprocess.run(
        [needed(shell), "-n", str(ROOT / FILES[shell])], capture_output=True, timeout=LIMIT_S, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, b"")


@pytest.mark.parametrize(("typed", "meant"), TYPED)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_tab_key_completes_in_a_terminal(shell: str, typed: str, meant: str, tmp_path: Path) -> None:
    said = _typed([needed(shell), *_quiet(shell)], _prepared(shell), typed, tmp_path)

    assert f"GOT<{meant}>" in said


@pytest.mark.parametrize("path", [node.path for node in read(build()).walk()], ids=lambda path: " ".join(path) or "-")
def test_fish_offers_each_command_its_commands_options_and_operands(path: tuple[str, ...], tmp_path: Path) -> None:
    node = next(node for node in read(build()).walk() if node.path == path)
    line = " ".join(("pi-session-mcp", *path))

    assert _fish_offers(f"{line} --", tmp_path) == {option.name for option in node.options}
    if node.commands or node.operands:
        assert _fish_offers(f"{line} ", tmp_path) == {*(below.path[-1] for below in node.commands), *node.operands}


def test_fish_completes_a_value(tmp_path: Path) -> None:
    assert _fish_offers("pi-session-mcp config init --thinking-level x", tmp_path) == {"xhigh"}


@pytest.mark.parametrize("shell", FILES)
def test_the_script_is_shown_for_a_shell_that_is_named(shell: str, shell_of_test: Shell) -> None:
    told = shell_of_test.run("--show-completion", shell)
    reported = json.loads(shell_of_test.run("--show-completion", shell, "--json").out)

    assert (told.code, told.out, told.err) == (0, SCRIPTS[FILES[shell]], "")
    assert reported["completion"] == told.out


def test_a_shell_that_is_not_known_names_those_that_are(shell_of_test: Shell) -> None:
    report = json.loads(shell_of_test.run("--show-completion", "ksh", "--json").out)

    assert (report["exitCode"], report["valid"]) == (64, {"shells": ["bash", "fish", "zsh"]})


@pytest.mark.parametrize(("shell", "start_file"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", None)])
def test_installed_completion_works_in_a_new_shell_and_a_second_install_changes_nothing(
    shell: str, start_file: str | None, shell_of_test: Shell
) -> None:
    home = shell_of_test.home
    kept = b"# mine, without an end of line"
    if start_file is not None:
        (home / start_file).write_bytes(kept)

    first, second = (_installed_from(shell, shell_of_test) for _ in range(2))

    assert (first["ok"], first["shell"], first["startFileChanged"]) == (True, shell, start_file is not None)
    assert (second["ok"], second["startFileChanged"]) == (True, False)
    if start_file is not None:
        assert (home / start_file).read_bytes().startswith(kept + b"\n")
    if shell == "fish":
        assert _fish_offers("pi-session-mcp ext", home, source="function pi-session-mcp; end; ") == {"extensions"}
    else:
        said = _typed([needed(shell), "-i"], ECHOING, "pi-session-mcp setup claude-code:u", home)
        assert "GOT<setup claude-code:user>" in said


def test_completion_that_cannot_be_written_is_a_failure_with_a_way_out(shell_of_test: Shell) -> None:
    (shell_of_test.home / ".config").write_text("in the way")

    report = _installed_from("fish", shell_of_test)

    assert (report["exitCode"], report["code"]) == (1, "completion_not_installed")
    assert str(shell_of_test.home) not in json.dumps(report)


@pytest.fixture
def shell_of_test(tmp_path: Path) -> Shell:
    """The program in an empty home, under a name that no parameter hides."""
    return Shell(tmp_path)


def _installed_from(shell: str, at: Shell) -> dict[str, object]:
    """The report of an install that `shell` itself started."""
    argv = " ".join(f"'{word}'" for word in at.argv("--install-completion", "--json"))
    ended = subprocess.run(
        [needed(shell), "-c", f"{argv}; exit 0"],  # two commands, so that the shell stays and is found
        cwd=at.home,
        env=at.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    report: dict[str, object] = json.loads(ended.stdout)
    return report


def _quiet(shell: str) -> list[str]:
    return {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]


def _prepared(shell: str) -> str:
    start = "autoload -Uz compinit; compinit -u -D; " if shell == "zsh" else ""
    return f"{start}source '{ROOT / FILES[shell]}'; {ECHOING}"


def _fish_offers(line: str, home: Path, *, source: str | None = None) -> set[str]:
    program = needed("fish")
    load = f"source '{ROOT / FILES['fish']}'; " if source is None else source
    ended = subprocess.run(
        [program, "-c", f"{load}complete -C '{line}'"],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=True,
    )
    return {entry.split("\t")[0] for entry in ended.stdout.decode().splitlines()}


def _typed(argv: list[str], prepare: str, typed: str, home: Path) -> str:
    """What an interactive shell answers to a line that is typed and completed, once it is prepared."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "PS1": "$ "}
    with Terminal(argv, environment, home) as terminal:
        terminal.type(f"{prepare}; printf '%s-%s\\n' all set\n")
        terminal.read_until("all-set\r\n")
        terminal.type(f"{typed}\t\n")
        return terminal.read_until(">\r\n")
