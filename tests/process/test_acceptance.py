"""`python -m acceptance` with stub clients: its verdict, its exits, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lasting import needs_a_lasting_checkout
from tests.support.stub_client import install_stub_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
WITHIN_S = 170


class Harness:
    """The harness with clients of our choice, all of it below one directory."""

    def __init__(self, directory: Path) -> None:
        self.temporary, self.record = directory / "tmp", directory / "record.json"
        self.temporary.mkdir()
        self.clients = directory / "clients"
        self.started: list[subprocess.Popen[str]] = []
        install_stub_clients(directory / "home", self.clients)

    def start(self, *words: str) -> subprocess.Popen[str]:
        options = (
            "--only",
            "setup",
            "--clients",
            str(self.clients),
            "--json",
            str(self.record),
            "--cache",
            str(self.temporary / "cache"),
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "acceptance", *options, *words],
            cwd=CHECKOUT,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        _, stderr = process.communicate(timeout=WITHIN_S)
        return process.returncode, stderr

    def verdicts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.record.read_text())
        return found

    def homes(self) -> list[Path]:
        return list(self.temporary.glob("acceptance-canary-*"))

    def wait_for_a_home(self) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not self.homes():
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path)
    yield harness
    for process in harness.started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@needs_a_lasting_checkout
def test_a_client_that_keeps_its_contract_passes_every_check(harness: Harness) -> None:
    status, said = harness.run("codex:user", "--configuration", "full", "--quick")

    told = harness.verdicts()
    failed = [check for run in told["runs"] for check in run["checks"] if not check["passed"]]
    assert (status, failed) == (0, []), said
    assert told["checks"] == told["passed"] > len("nine steps")
    assert harness.homes() == []


@needs_a_lasting_checkout
def test_a_client_that_loses_our_registration_fails_and_is_told_from_a_broken_harness(harness: Harness) -> None:
    (harness.clients / "codex").rename(harness.clients / "codex-itself")
    loser = (
        'case "$2 $3" in "add pi-session-mcp") echo added; exit 0;; esac\nexec "$(dirname "$0")/codex-itself" "$@"\n'
    )
    (harness.clients / "codex").write_text(f"#!/bin/sh\n{loser}")
    (harness.clients / "codex").chmod(0o755)

    status, said = harness.run("codex:user", "--configuration", "plain", "--quick")

    verdicts = {check["id"]: check["passed"] for check in harness.verdicts()["runs"][0]["checks"]}
    assert status == 1, said
    assert verdicts["step_1"]
    assert not verdicts["step_3"]
    assert verdicts["unrelated_untouched"]


def test_a_client_that_is_none_is_the_harness_s_trouble(harness: Harness) -> None:
    (harness.clients / "codex").write_text("#!/bin/sh\nexit 1\n")

    status, said = harness.run("codex:user")

    assert status == 2
    assert "harness" in said
    assert not harness.record.exists()


@needs_a_lasting_checkout
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_is_left_when_it_is_interrupted(harness: Harness, number: int, expected: int) -> None:
    process = harness.start("codex:user")
    harness.wait_for_a_home()
    process.send_signal(number)
    _, said = process.communicate(timeout=WITHIN_S)

    assert process.returncode == expected, said
    assert harness.homes() == []
    assert not harness.record.exists()


def test_an_unknown_target_is_refused_with_the_known_ones(harness: Harness) -> None:
    status, said = harness.run("claude:user")

    assert status == 2
    assert "claude-code:user" in said
