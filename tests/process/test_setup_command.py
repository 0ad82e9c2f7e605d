"""The command itself, as an operator runs it: the real doctor, the real server, stub clients."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.environment import ensure_installed
from tests.support.lasting import needs_a_lasting_checkout
from tests.support.stub_client import StubHome, install_stub_clients
from tests.support.trees import WAIT_S
from tests.support.warm_program import WarmProgram

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NINE = (
    ((), "planned", "absent", "absent"),
    (("--dry-run",), "planned", "absent", "absent"),
    (("--apply",), "ok", "ok", "applied"),
    (("--apply",), "ok", "unchanged", "already_equivalent"),
    (("--verify",), "ok", "ok", "mcp_verified"),
    (("--rollback",), "ok", "ok", "rolled_back"),
    (("--apply",), "ok", "ok", "applied"),
    (("--verify",), "ok", "ok", "mcp_verified"),
    (("--remove",), "ok", "ok", "removed"),
)
PROGRAM = (sys.executable, "-m", "pi_session_mcp", "setup", "--json")


@pytest.fixture
def stub(server_environment: dict[str, str], tmp_path: Path) -> StubHome:
    ensure_installed()
    stub = install_stub_clients(tmp_path / "home", tmp_path / "programs")
    server_environment.update(PATH=stub.environ["PATH"])
    return stub


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProgram]:
    with WarmProgram() as warm:
        yield warm


def run(warm: WarmProgram, environ: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    done = warm.run(["setup", "--json", *arguments], environ, Path.cwd())
    told: dict[str, Any] = json.loads(done.out)
    assert told["exitCode"] == done.code
    return told


@needs_a_lasting_checkout
def test_the_nine_steps(stub: StubHome, server_environment: dict[str, str], tmp_path: Path, warm: WarmProgram) -> None:
    reports = []
    for operation, status, finding_status, code in NINE:
        told = run(warm, server_environment, *operation, "claude-code:user")
        reports.append(json.dumps(told))
        (finding,) = told["findings"]
        assert (told["status"], finding["status"], finding["code"], told["exitCode"]) == (
            *(status, finding_status, code),
            0,
        )
    assert not any(str(tmp_path) in report or "PI_SESSION_MCP_CONFIG" in report for report in reports)


@needs_a_lasting_checkout
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_client_and_is_told(
    stub: StubHome, server_environment: dict[str, str], number: signal.Signals, status: int, warm: WarmProgram
) -> None:
    stub.behave("claude", "add", hold_before=True, ignores_term=True)
    held = stub.home / ".stub" / "held.before"
    words = [*PROGRAM, "--apply", "claude-code:user"]
    with subprocess.Popen(words, env=server_environment, stdout=subprocess.PIPE) as child:
        until = time.monotonic() + WAIT_S * 3
        while not held.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        child.send_signal(number)
        told = json.loads(child.communicate(timeout=WAIT_S * 3)[0])
    (finding,) = told["findings"]
    assert (child.returncode, told["exitCode"], finding["code"]) == (status, status, "operation_interrupted")
    stub.behave("claude", "add")
    assert run(warm, server_environment, "--apply", "claude-code:user")["findings"][0]["code"] == "applied"


@needs_a_lasting_checkout
def test_one_bad_workspace_is_said_and_keeps_nobody_from_registering_also_by_a_name_that_the_locale_has_not(
    stub: StubHome, server_environment: dict[str, str], tmp_path: Path
) -> None:
    configuration = tmp_path / "größe" / "café.json"
    configuration.parent.mkdir()
    said = json.loads(Path(server_environment["PI_SESSION_MCP_CONFIG"]).read_text())
    configuration.write_text(json.dumps({**said, "workspaces": {"fine": str(tmp_path), "bad": "nowhere"}}))
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environ = {**server_environment, **ascii_only, "PI_SESSION_MCP_CONFIG": str(configuration)}
    codes = {}

    for operation in ("--apply", "--verify", "--remove"):
        words = [*PROGRAM, operation, "claude-code:user"]
        ended = subprocess.run(words, env=environ, capture_output=True, timeout=WAIT_S, check=False)
        told = json.loads(ended.stdout)
        codes[operation] = (told["findings"][0]["code"], told.get("doctor"))

    assert codes == {
        "--apply": ("applied", "errors"),
        "--verify": ("mcp_verified", "errors"),
        "--remove": ("removed", None),
    }
