"""Whatever a client leaves behind: the fence stays until it is gone, and nothing is left at the end."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import psutil
import pytest

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.setup.clients.base import ClientCommand, CommandFailed, CommandFailure
from pi_session_mcp.setup.guardian import Guarded
from tests.support.setup_driver import keeper_on_macos, keeper_that_goes_blind
from tests.support.setup_worlds import Operator
from tests.support.trees import survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.setup.steps import Running
    from tests.support.setup_worlds import Driver


@pytest.fixture
def operator(tmp_path: Path, driver: Driver) -> Iterator[Operator]:
    operator = Operator(tmp_path, driver)
    yield operator
    for process in operator.running():
        process.kill()


@pytest.mark.parametrize("leaves", ["child", "session", "daemon"])
def test_what_a_client_leaves_behind_is_ended_before_anything_goes_on(operator: Operator, leaves: str) -> None:
    operator.stub.behave("claude", "add", leaves=leaves)
    assert operator.code("apply") == "applied"
    assert operator.running() == []
    assert operator.fence_is_free()


@pytest.mark.parametrize("trouble", ["hold_after", "stops_guardian"])
@pytest.mark.parametrize("verb", ["get", "add"])
def test_a_client_that_takes_no_signal_and_never_ends_or_stops_its_guardian_is_ended(
    operator: Operator, verb: str, trouble: str
) -> None:
    stubborn = {"ignores_term": True, "leaves": "session", trouble: True}
    operator.stub.behave("claude", verb, **stubborn)  # type: ignore[arg-type]
    code = operator.code("apply", command_within_s=3)
    assert code == {"get": "inspect_failed", "add": "apply_failed_recovery_pending"}[verb]
    assert operator.running() == []
    assert operator.fence_is_free()
    operator.stub.behave("claude", verb)  # type: ignore[arg-type]
    assert operator.code("apply") == {"get": "applied", "add": "pending_recovered"}[verb]


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_setup_whose_guardian_is_stopped(operator: Operator, number: str) -> None:
    operator.stub.behave("claude", "get", stops_guardian=True, hold_after=True)
    stopped = operator.root / "home" / ".stub" / "held.after"
    answer = operator.setup("apply", step="inspect.running", victim=number, held=str(stopped))
    assert answer["exitCode"] == {"SIGINT": 130, "SIGTERM": 143}[number]
    assert operator.running() == []
    assert operator.fence_is_free()


@pytest.mark.anyio
async def test_a_guardian_that_is_stopped_again_and_again_comes_to_its_end(tmp_path: Path) -> None:
    pids: list[int] = []

    def note(_step: object, running: Running | None = None) -> None:
        pids.extend([] if running is None else [running.guardian, running.command])

    guarded = Guarded(None, Deadlines(setup_command_s=0.5, setup_gone_s=5.0), on_step=note)
    words = (sys.executable, "-S", "-c", "import time; time.sleep(600)")

    async def stop_it() -> None:
        while True:
            for pid in pids[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_it)
        with pytest.raises(CommandFailed) as failed:
            await guarded.run(ClientCommand(words, tmp_path, {}, mutates=True))
        tasks.cancel_scope.cancel()

    assert failed.value.kind in {CommandFailure.UNKNOWN_PROCESSES, CommandFailure.TIMEOUT}
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    assert survivors(processes) == []


def test_a_process_that_outlives_command_and_guardian_keeps_the_fence(operator: Operator) -> None:
    operator.stub.behave("claude", "add", hold_after=True, leaves="session")
    held = operator.root / "home" / ".stub" / "held.after"
    ended = operator.setup("apply", step="add.running", victim="both", held=str(held))
    assert ended["signal"] == 9
    left = psutil.Process(int((operator.root / "home" / ".stub" / "left").read_text()))
    client = psutil.Process(int(held.read_text())) if psutil.pid_exists(int(held.read_text())) else None
    assert survivors([client] if client else []) == []
    assert not operator.fence_is_free()
    assert operator.code("apply", lock_within_s=0.2) == "lock_busy"

    left.kill()
    operator.until_fence_falls()
    operator.stub.behave("claude", "add")
    assert operator.code("apply") == "pending_recovered"


def test_a_guardian_that_cannot_see_keeps_the_fence_and_the_run_fails(operator: Operator) -> None:
    keeper = keeper_that_goes_blind(operator.notes.parent)
    code = operator.code("apply", keeper=keeper, step="add.running", victim="blind")
    assert code == "apply_failed_recovery_pending"
    assert not operator.fence_is_free()
    assert operator.code("apply", lock_within_s=0.2) == "lock_busy"

    (operator.notes.parent / "blind").unlink()
    operator.until_fence_falls()
    assert operator.code("apply") in {"pending_recovered", "applied"}


def test_without_a_process_table_no_client_is_started(operator: Operator) -> None:
    keeper = keeper_that_goes_blind(operator.notes.parent)
    (operator.notes.parent / "blind").touch()
    assert operator.code("apply", keeper=keeper) == "operation_failed"
    assert operator.stub.calls() == []
    (operator.notes.parent / "blind").unlink()
    operator.until_fence_falls()


def test_with_what_macos_has_everything_works(operator: Operator) -> None:
    operator.request = {"macos": True, "keeper": keeper_on_macos(operator.root)}
    assert operator.code("dry-run") == "absent"
    assert operator.code("apply") == "applied"
    assert operator.code("apply") == "already_equivalent"
    operator.installation = "second"
    assert operator.code("rebind") == "rebound"
    assert operator.is_registered_for("second")
    assert operator.code("remove") == "removed"
    assert operator.records() == []
    assert operator.running() == []


def test_with_what_macos_has_another_type_of_volume_than_the_roots_is_refused(operator: Operator) -> None:
    operator.request = {"macos": True, "keeper": keeper_on_macos(operator.root)}
    assert operator.code("apply", other_volume=str(operator.root / "home")) == "filesystem_unsupported"
    assert operator.stub.calls() == []


@pytest.mark.parametrize(
    "victim",
    [
        *("command", "both", "client"),
        *(pytest.param(victim, marks=pytest.mark.matrix) for victim in ("guardian", "SIGINT")),
    ],
)
def test_with_what_macos_has_a_killed_apply_is_finished_by_the_next(operator: Operator, victim: str) -> None:
    operator.request = {"macos": True, "keeper": keeper_on_macos(operator.root)}
    operator.stub.behave("claude", "add", hold_before=True)
    held = operator.root / "home" / ".stub" / "held.before"
    operator.setup("apply", step="add.running", victim=victim, held=str(held))
    if victim == "both":
        # macOS has no death signal: the client goes on, and holds the fence, until it ends by itself.
        assert not operator.fence_is_free()
        operator.stub.release()
    operator.until_fence_falls()
    operator.stub.behave("claude", "add")
    assert operator.code("apply") == ("pending_recovered" if victim == "both" else "applied")
    assert operator.is_registered_for("first")
