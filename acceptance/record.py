"""The record of a run: verdicts and versions, and nothing that tells whose machine it was."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from acceptance.errors import HarnessError
from pi_session_mcp import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from acceptance.programs import Program
    from acceptance.scenario import Check


@dataclass(frozen=True, slots=True)
class Run:
    """One target with one configuration, and what came of it."""

    target: str
    configuration: str
    checks: tuple[Check, ...]


def record(runs: Iterable[Run], programs: Iterable[Program], installation: str) -> dict[str, Any]:
    """The whole as JSON has it."""
    runs = list(runs)
    checks = [check for run in runs for check in run.checks]
    passed = sum(check.passed for check in checks)
    return {
        "schemaVersion": 1,
        "packageVersion": __version__,
        "installation": installation,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "clients": {program.client: program.version for program in programs},
        "runs": [
            {"target": run.target, "configuration": run.configuration, "checks": [asdict(one) for one in run.checks]}
            for run in runs
        ],
        "checks": len(checks),
        "passed": passed,
        "failed": len(checks) - passed,
    }


def as_text(document: Mapping[str, Any]) -> str:
    """The record to be written. Raises `HarnessError` rather than tell a path: nothing in it has a slash."""
    text = json.dumps(document, indent=2) + "\n"
    if "/" in text:
        raise HarnessError("the record would tell a path")
    return text
