"""Asks for advisories about everything that a release brings: what the wheel requires, and the shipped lock file.

Exits with 0 when there is none, 1 when there is one, and 2 when somebody could not be asked about something: that is
no clean audit. `pip-audit` alone would call it one, since it passes over what its service does not answer for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.runtime.record import shipped_lock
from pi_session_mcp.runtime.toolchain import find_toolchain

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
OURS: Final = "pi-session-mcp"
WITHIN_S: Final = 600


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking about one set of packages; `unasked` says about what nobody answered."""

    of: str
    packages: int
    advisories: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """For a person."""
        if self.unasked:
            word = f"could not ask: {_shortened(self.unasked)}"
        else:
            word = f"{len(self.advisories) or 'no'} advisories about {self.packages} packages"
        return [f"{self.of}: {word}", *(f"  {advisory}" for advisory in self.advisories)]


def main() -> int:
    """Ask, and print what was answered."""
    with tempfile.TemporaryDirectory(prefix="audit-") as made:
        answers = [_ask_about_python(Path(made)), _ask_about_npm(Path(made))]
    for answer in answers:
        print("\n".join(answer.lines))
    return exit_status(answers)


def exit_status(answers: Sequence[Answer]) -> int:
    """An advisory is worth more than a question that nobody answered, and both more than nothing."""
    if any(answer.advisories for answer in answers):
        return 1
    return 2 if any(answer.unasked for answer in answers) else 0


def of_pip_audit(output: str, installed: frozenset[str]) -> Answer:
    """`pip-audit`'s report about the distributions that are installed."""
    of = "Python packages"
    report = _object(output)
    rows = report.get("dependencies")
    if not isinstance(rows, list):
        return Answer(of, len(installed), unasked=("pip-audit gave no report",))
    asked = {_normal(row["name"]): row["vulns"] for row in rows if "vulns" in row}
    found = [f"{name}: {each['id']}" for name, each in sorted(_pairs(asked), key=str)]
    return Answer(of, len(installed), tuple(found), tuple(sorted(installed - asked.keys())))


def of_npm_audit(output: str, packages: int) -> Answer:
    """`npm audit`'s report about a lock file with so many packages."""
    of = "npm packages"
    report = _object(output)
    rows = report.get("vulnerabilities")
    if "auditReportVersion" not in report or not isinstance(rows, dict):
        status = report.get("statusCode")
        word = f"the registry answered {status}" if isinstance(status, int) else "npm audit gave no report"
        return Answer(of, packages, unasked=(word,))
    found = [f"{name}: {row.get('severity')}, {row.get('range')}" for name, row in sorted(rows.items())]
    return Answer(of, packages, tuple(found))


def _pairs(asked: dict[str, list[dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, each) for name, advisories in asked.items() for each in advisories]


def _object(output: str) -> dict[str, Any]:
    try:
        report = json.loads(output)
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _ask_about_python(root: Path) -> Answer:
    auditor, audited = root / "auditor", root / "audited"
    for prefix in (auditor, audited):
        venv.create(prefix, with_pip=False, symlinks=True)
    _pip("--python", str(auditor / "bin" / "python"), "install", "pip-audit")
    _pip("--python", str(audited / "bin" / "python"), "install", f"{ROOT}[node]")
    packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(audited), "platbase": str(audited)}))
    installed = {_normal(path.name.rsplit("-", 2)[0]) for path in packages.glob("*.dist-info")} - {OURS}
    words = ("--path", str(packages), "--format", "json", "--progress-spinner", "off")
    ended = _run([str(auditor / "bin" / "pip-audit"), *words], root)
    return of_pip_audit(ended.stdout, frozenset(installed))


def _ask_about_npm(root: Path) -> Answer:
    lock = root / "lock"
    lock.mkdir()
    for name, content in shipped_lock().items():
        (lock / name).write_bytes(content)
    packages = len(json.loads((lock / "package-lock.json").read_bytes())["packages"]) - 1
    toolchain = find_toolchain(os.environ, ())
    if toolchain is None or toolchain.npm is None:
        return Answer("npm packages", packages, unasked=("there is no Node with an npm",))
    return of_npm_audit(_run([*toolchain.npm, "audit", "--json", "--package-lock-only"], lock).stdout, packages)


def _pip(*words: str) -> None:
    """Run pip; what it says is shown, and its failure is ours."""
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    if subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=WITHIN_S, check=False).returncode:
        print("could not ask: pip could not install what is audited, or pip-audit", file=sys.stderr)
        sys.exit(2)


def _run(argv: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=WITHIN_S,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
