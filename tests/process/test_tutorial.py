"""The tutorial does what it says: its commands run in a throw-away home, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.process.test_demo import STEPS
from tests.support.environment import ensure_installed
from tests.support.lasting import can_be_registered
from tests.support.stub_client import install_stub_clients

PAGE: Final = Path(__file__).parents[2] / "docs" / "tutorial.md"
LIMIT_S: Final = 170
DEMONSTRATION: Final = "pi-session-mcp demo\n"
"""It has tests of its own, and takes long."""
COLUMNS: Final = 120
"""Wide enough that no line of the page is wrapped."""


def blocks(language: str) -> list[str]:
    """The text of each block of the page that is marked as `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def lines_missing(expected: list[str], printed: list[str]) -> list[str]:
    """The lines of `expected` that are not in `printed` in this order; an ellipsis stands for anything."""
    rest = iter(printed)
    patterns = [(line, re.compile(".*".join(map(re.escape, line.split("…"))))) for line in expected]
    return [line for line, pattern in patterns if not any(pattern.fullmatch(each) for each in rest)]


def log_in(home: Path) -> None:
    """The tutorial is for somebody who has logged in with Pi."""
    (home / ".pi" / "agent").mkdir(parents=True)
    (home / ".pi" / "agent" / "auth.json").write_text('{"anthropic": {"type": "api_key", "key": "no-key"}}')


def test_the_commands_of_the_tutorial_print_what_it_shows_and_leave_no_file(tmp_path: Path) -> None:
    ensure_installed()
    stubs = install_stub_clients(tmp_path / "home", tmp_path / "programs", clients=("claude",))
    log_in(stubs.home)
    programs = (Path(sys.executable).parent, stubs.programs, "/usr/bin", "/bin")
    environment = {
        "HOME": str(stubs.home),
        "PATH": os.pathsep.join(map(str, programs)),
        "COLUMNS": str(COLUMNS),
        "LC_ALL": "C.UTF-8",
    }
    script = [line for block in blocks("sh") if block != DEMONSTRATION for line in block.splitlines()]
    shown = [line for block in blocks("text")[1:] for line in block.splitlines()]
    registers = can_be_registered(environment)
    if not registers:
        script = [line for line in script if not line.startswith("pi-session-mcp setup")]
        shown = [line for line in shown if "claude-code:user" not in line]

    ran = subprocess.run(
        ["bash", "-eu", "-c", "\n".join(script)],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )

    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    assert shown
    assert lines_missing(shown, ran.stdout.splitlines()) == []
    assert not (stubs.home / "pi-tutorial").exists()
    assert [verb for verb in stubs.verbs("claude") if verb in {"add", "remove"}] == ["add", "remove"] * registers


def test_the_tutorial_begins_with_the_demonstration_and_shows_steps_that_it_takes() -> None:
    command, shown = blocks("sh")[0], blocks("text")[0]

    named = re.findall(r"^✓ ok +(.+) \(…\)$", shown, re.MULTILINE)
    assert command == DEMONSTRATION
    assert len(named) == len(shown.splitlines()) - 2
    assert lines_missing(named, list(STEPS)) == []
    assert f"All {len(STEPS)} steps were seen to happen." in shown
