"""The demonstration as a person starts it: every step is seen, and nothing is left, however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import venv
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil
import pytest

import pi_session_mcp
from tests.support.environment import ensure_installed
from tests.support.runtimes import installed, place_in_environment, program
from tests.support.trees import kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S: Final = 150
STEPS: Final = (
    "Node and the Pi SDK are there",
    "The server answers the handshake",
    "The eight tools are listed",
    "Capabilities name what may be used",
    "A read-only session starts",
    "The model lists and reads files",
    "A follow-up keeps the context",
    "What read-only forbids is refused",
    "A coding session starts",
    "A coding turn changes one file",
    "A running turn is aborted",
    "Both sessions close",
    "The server ends and leaves nothing",
)
DIFF: Final = """
  --- a/greet.py
  +++ b/greet.py
  @@ -1,2 +1,2 @@
   def greet(name):
  -    return "Helo, " + name
  +    return "Hello, " + name
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a demo runs: a home and a directory for temporary files, both empty, and a configuration to ignore."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        return self.root / "temporary files, größer"

    def make(self) -> Place:
        self.home.mkdir(parents=True)
        self.temporary.mkdir()
        return self

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PI_SESSION_MCP_CONFIG": str(self.root / "is-not-there.json"),
            "PI_CODING_AGENT_DIR": str(self.home / "pi"),
            "HTTP_PROXY": "http://127.0.0.1:9",
            "NODE_OPTIONS": "--not-an-option",
            **more,
        }

    def left_over(self) -> list[Path]:
        return [*self.temporary.iterdir(), *self.home.iterdir()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    ensure_installed()
    return Place(tmp_path).make()


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str
    processes: list[psutil.Process]
    """Everything below the demo that was seen after each line that it wrote."""


def demo(*options: str, python: Path | str = sys.executable) -> list[str]:
    return [str(python), "-m", "pi_session_mcp", "demo", *options]


@contextmanager
def started(place: Place, argv: list[str], **more: str) -> Iterator[subprocess.Popen[str]]:
    """A demo in a group of its own; what a failing test has left of it is ended."""
    child = subprocess.Popen(
        argv,
        cwd=place.root,
        env=place.environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            kill_all([*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)])
        child.communicate(timeout=LIMIT_S)


def finished(place: Place, argv: list[str], **more: str) -> Ended:
    """A demo that ran to its end; its processes are looked at after each line that it writes."""
    with started(place, argv, **more) as child:
        assert child.stdout is not None
        seen: dict[int, psutil.Process] = {}
        lines = []
        for line in child.stdout:
            lines.append(line)
            if child.poll() is None:
                seen |= {each.pid: each for each in psutil.Process(child.pid).children(recursive=True)}
        _, err = child.communicate(timeout=LIMIT_S)
        return Ended(child.returncode, "".join(lines), err, list(seen.values()))


def test_every_step_is_seen_and_nothing_is_left(place: Place) -> None:
    ended = finished(place, demo("--json"))

    report = json.loads(ended.out)
    assert [step for step in report["steps"] if not step["ok"]] == []
    assert tuple(step["name"] for step in report["steps"]) == STEPS
    assert all(type(step["ms"]) is int and step["ms"] > 0 for step in report["steps"])
    assert (report["schemaVersion"], report["ok"], report["exitCode"]) == (1, True, 0)
    assert (ended.code, ended.out.count("\n"), ended.err) == (0, 1, "")
    assert "processes before: 3" in report["steps"][-1]["detail"]
    assert place.left_over() == []
    assert str(place.root) not in ended.out


def test_a_person_sees_what_was_read_and_changed_within_40_columns(place: Place) -> None:
    ended = finished(place, demo(), COLUMNS="40", PYTHONIOENCODING="utf-8")

    assert (ended.code, ended.err) == (0, "")
    assert re.search(r"greet\.py\n  notes\.txt\n  The code word is [0-9a-f]{8}\.\n", ended.out)
    assert "You asked: Look around" in ended.out
    assert DIFF in ended.out
    assert "processes after: 0" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 40
    assert "\x1b" not in ended.out
    assert ended.processes
    assert survivors(ended.processes, within_s=0) == []
    assert place.left_over() == []


def test_the_code_word_is_another_in_each_run_so_that_only_a_tool_can_know_it(place: Place) -> None:
    from pi_session_mcp.demo.world import throw_away_world

    with throw_away_world() as one, throw_away_world() as other:
        assert one.code_word != other.code_word
        assert all(one.code_word not in str(step) for step in one.model._traffic._scripts.values())


@pytest.fixture
def hang_up_ends() -> Iterator[None]:
    """A run that was begun with `nohup` ignores this signal, and every child would inherit that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


EARLY: Final = "Node and the Pi SDK"
LATE: Final = "read-only session"
INTERRUPTED: Final = (signal.SIGINT, 130, "Interrupted.")
TERMINATED: Final = (signal.SIGTERM, 143, "Ended by a signal.")
HUNG_UP: Final = (signal.SIGHUP, -1, "")


@pytest.mark.usefixtures("hang_up_ends")
@pytest.mark.parametrize(
    ("number", "code", "words", "step"),
    [
        (*INTERRUPTED, LATE),
        (*TERMINATED, EARLY),
        (*HUNG_UP, LATE),
        pytest.param(*INTERRUPTED, EARLY, marks=pytest.mark.matrix),
        pytest.param(*TERMINATED, LATE, marks=pytest.mark.matrix),
        pytest.param(*HUNG_UP, EARLY, marks=pytest.mark.matrix),
    ],
)
def test_a_signal_in_the_middle_leaves_nothing(
    place: Place, number: signal.Signals, code: int, words: str, step: str
) -> None:
    with started(place, demo()) as child:
        processes = processes_after(child, step)

        child.send_signal(number)
        child.send_signal(number)
        _, err = child.communicate(timeout=LIMIT_S)

    assert child.returncode == code
    assert words in err
    assert len(err.splitlines()) == (1 if words else 0)
    assert survivors(processes, within_s=0) == []
    assert place.left_over() == []


def test_a_demo_that_is_killed_takes_its_processes_with_it(place: Place) -> None:
    with started(place, demo()) as child:
        processes = processes_after(child, "read-only session")
        assert len(processes) >= 3

        child.kill()
        child.communicate(timeout=LIMIT_S)

    assert survivors(processes) == []


def processes_after(child: subprocess.Popen[str], step: str) -> list[psutil.Process]:
    """What runs below the demo once it has shown the step whose name contains these words."""
    assert child.stdout is not None
    for line in child.stdout:
        if step in line:
            return psutil.Process(child.pid).children(recursive=True)
    raise AssertionError("the step was not shown")


def environment_without_runtime(place: Place) -> Path:
    """A Python environment that has our package and its libraries, but no installed runtime; its interpreter."""
    prefix = place.root / "environment"
    venv.create(prefix, with_pip=False, symlinks=True)
    (packages,) = prefix.glob("lib/python*/site-packages")
    ours = Path(pi_session_mcp.__file__).parents[1]
    libraries = Path(psutil.__file__).parents[1]
    (packages / "ours.pth").write_text(f"{libraries}\n{ours}\n")
    return prefix / "bin" / "python"


def test_without_a_runtime_it_says_what_to_do(place: Place) -> None:
    python = environment_without_runtime(place)
    (place.root / "empty").mkdir()

    ended = finished(place, demo("--json", python=python), PATH=str(place.root / "empty"))

    (step,) = json.loads(ended.out)["steps"]
    assert (step["name"], step["ok"]) == (STEPS[0], False)
    assert step["detail"] == ["pi_runtime_missing", "Run `pi-session-mcp runtime install`."]
    assert (ended.code, ended.err) == (1, "")
    assert place.left_over() == []


def test_a_step_that_is_not_seen_ends_the_walk_and_the_server(place: Place) -> None:
    python = environment_without_runtime(place)
    node = program(place.root / "node" / "node", 'case "$1" in --version) echo v24.19.0;; *) exit 3;; esac')
    installed(place_in_environment(python.parents[1]), node)

    ended = finished(place, demo("--json", python=python))

    report = json.loads(ended.out)
    assert [(step["name"], step["ok"]) for step in report["steps"]] == [
        *((name, True) for name in STEPS[:4]),
        (STEPS[4], False),
        (STEPS[-1], True),
    ]
    assert report["steps"][4]["detail"] == [
        "pi_session_start: pi_runtime_unavailable (Pi runtime is unavailable)",
        "Run `pi-session-mcp runtime install`.",
    ]
    assert (ended.code, report["exitCode"], report["ok"]) == (1, 1, False)
    assert survivors(ended.processes, within_s=0) == []
    assert place.left_over() == []


def test_without_a_place_for_temporary_files_it_says_so(place: Place) -> None:
    place.temporary.rmdir()
    no_temporary = "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/is-not-there']"
    run = "from pi_session_mcp.cli.app import main; sys.exit(main())"

    ended = finished(place, [sys.executable, "-c", f"{no_temporary}\n{run}", "demo", "--json"])

    (step,) = json.loads(ended.out)["steps"]
    assert (step["ok"], step["detail"][-1]) == (False, "Let TMPDIR name a directory with free space.")
    assert (ended.code, ended.err) == (1, "")


def test_a_reader_that_leaves_early_does_not_stop_it_from_cleaning_up(place: Place) -> None:
    with started(place, demo()) as child:
        processes = processes_after(child, "read-only session")
        assert child.stdout is not None
        child.stdout.close()
        assert child.wait(LIMIT_S) == 0

    assert survivors(processes, within_s=0) == []
    assert place.left_over() == []
