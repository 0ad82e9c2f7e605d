"""What the doctor says and what a start does, in one world."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.process.client import SERVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.process.client import Child
    from tests.support.real import RealWorld
    from tests.support.warm_program import WarmProgram

_GIVE_UP: Final = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.support.powers import give_up_powers
give_up_powers()
os.execv(sys.argv[1], sys.argv[1:])
"""
DOCTOR: Final = (sys.executable, "-m", "pi_session_mcp", "doctor", "--json")
LIMIT_S: Final = 60

CODES: Final = {
    "workspace_missing": "workspace_unavailable",
    "workspace_not_directory": "workspace_unavailable",
    "workspace_unreadable": "workspace_unavailable",
    "workspace_path_not_utf8": "workspace_unavailable",
    "profile_provider_unknown": "unknown_provider",
    "profile_model_unknown": "unknown_model",
    "profile_authentication_missing": "local_authentication_missing",
    "profile_authentication_unavailable": "local_authentication_unavailable",
    "profile_model_unavailable": "model_unavailable",
    "profile_thinking_level_unavailable": "thinking_level_unavailable",
    "pi_configuration_invalid": "pi_configuration_invalid",
    "pi_agent_directory_not_writable": "local_authentication_unavailable",
    "pi_lock_present": "local_authentication_unavailable",
    "proxy_invalid": "proxy_invalid",
    "pi_runtime_broken": "pi_runtime_unavailable",
}
"""With which code a start is refused where the doctor finds this."""


def weak(command: Sequence[str]) -> tuple[str, ...]:
    """The command as a user whom permissions hold back."""
    return (sys.executable, "-c", _GIVE_UP, *command)


def weak_server() -> tuple[str, ...]:
    """A server that permissions hold back."""
    return weak(SERVE)


@dataclass(frozen=True)
class Diagnosis:
    """The doctor's report."""

    checks: tuple[dict[str, Any], ...]

    def codes(self, *subjects: str) -> set[str]:
        """With which codes a start would be refused, by what was found of these subjects."""
        found = (check for check in self.checks if check["severity"] != "ok" and check["subject"] in subjects)
        return {CODES[check["id"]] for check in found if check["id"] in CODES}

    def notes(self, subject: str) -> list[str]:
        """What was not looked at."""
        return [check["note"] for check in self.checks if check["subject"] == subject and "note" in check]


def diagnose(
    world: RealWorld, environ: Mapping[str, str], cwd: Path | None = None, *, warm: WarmProgram | None = None
) -> Diagnosis:
    """What the doctor says in this world to a user whom permissions hold back.

    Without `warm` it is a process of its own. What is said under another locale needs one.
    """
    if warm is not None:
        told = warm.run(DOCTOR[-2:], {**world.environment, **environ}, cwd or world.directory, weak=True)
        assert told.err == "", told.err
        return Diagnosis(tuple(json.loads(told.out)["checks"]))
    ran = subprocess.run(
        weak(DOCTOR),
        env={**world.environment, **environ},
        cwd=cwd or world.directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.stderr == b"", ran.stderr
    return Diagnosis(tuple(json.loads(ran.stdout)["checks"]))


def start_code(child: Child, workspace: str = "project", profile: str = "reader") -> str:
    """`ok`, or the code of the refusal; a session that started is closed again."""
    started = child.call("pi_session_start", workspace=workspace, executionProfile=profile)
    if not started["ok"]:
        return str(started["error"]["code"])
    child.call("pi_session_close", sessionId=started["session"]["id"])
    return "ok"
