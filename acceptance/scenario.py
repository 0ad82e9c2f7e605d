"""One target in one home: the nine steps, two at once, interruptions, and then what must be true."""

from __future__ import annotations

import json
import re
import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from acceptance.observer import Observer, real_files
from acceptance.processes import Finished, Started, left_of
from pi_session_mcp.setup.ownership import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from acceptance.homes import Home
    from acceptance.installations import Installation
    from acceptance.programs import Program
    from pi_session_mcp.setup.targets import Target

STEPS: Final = (
    ((), "planned", "absent (absent)"),
    (("--dry-run",), "planned", "absent (absent)"),
    (("--apply",), "ok", "ok (applied)"),
    (("--apply",), "ok", "unchanged (already_equivalent)"),
    (("--verify",), "ok", "ok (mcp_verified)"),
    (("--rollback",), "ok", "ok (rolled_back)"),
    (("--apply",), "ok", "ok (applied)"),
    (("--verify",), "ok", "ok (mcp_verified)"),
    (("--remove",), "ok", "ok (removed)"),
)
"""Options, status and finding; each exits with 0."""

CONVERGED: Final = frozenset({"ok (applied)", "ok (pending_recovered)", "unchanged (already_equivalent)"})
INTERRUPTED_AT: Final = (0.2, 0.5, 0.8)
"""Moments of an apply, as parts of how long the first one took."""

_WITHIN_S: Final = 300
_GONE_WITHIN_S: Final = 60
_WORD: Final = re.compile(r"[a-z_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be so. `seen` says in fixed words what was there instead."""

    id: str
    passed: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Report:
    """What setup said, as far as it can be told: words of its contract, or `unreadable`."""

    status: str
    finding: str
    exit_status: int

    def __str__(self) -> str:
        return f"{self.status}, {self.finding}, exit {self.exit_status}"


@dataclass
class Scenario:
    """The run of one target. `outputs` is everything that our program printed in it."""

    home: Home
    program: Program
    target: Target
    installation: Installation
    real_environ: Mapping[str, str]
    is_quick: bool = False
    checks: list[Check] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def run(self, say: Callable[[str], None]) -> list[Check]:
        """All of it. Raises `HarnessError` when the client does not work as a client."""
        observer = Observer(self.home, self.program, self.target)
        observer.register_unrelated()
        before = (observer.unrelated(), observer.rest()), real_files(self.real_environ), self.installation.fingerprint()
        apply_s = self._nine_steps(observer, say)
        if not self.is_quick:
            say("two at once")
            self._two_at_once()
            say("interruptions")
            self._interruptions(apply_s)
        self._afterwards(observer, *before)
        return self.checks

    def _nine_steps(self, observer: Observer, say: Callable[[str], None]) -> float:
        """The nine steps; how long the first apply took, in seconds."""
        apply_s = 0.0
        written: object = None
        for number, (options, status, finding) in enumerate(STEPS, 1):
            say(f"step {number}: {' '.join(options) or 'no option'}")
            started = time.monotonic()
            report = self._setup(*options)
            self._check(f"step_{number}", report == Report(status, finding, 0), str(report))
            if number == 3:
                apply_s = time.monotonic() - started
                self._while_registered(observer)
                written = observer.last_written()
            if number == 4:
                same = observer.last_written() == written
                self._check("second_apply_wrote_nothing", same, "same" if same else "changed")
        return apply_s

    def _while_registered(self, observer: Observer) -> None:
        entry = observer.ours() or {}
        expected = str(self.installation.program), ["serve"], {"PI_SESSION_MCP_CONFIG": str(self.home.configuration)}
        exact = (entry.get("command"), entry.get("args"), entry.get("env")) == expected
        self._check("registered_exactly", exact, "exact" if exact else "different")
        records = self._records()
        self._check("recorded", records == 1, f"{records} records")
        self._check_modes("modes_while_registered")

    def _two_at_once(self) -> None:
        words, environ = self._words("--apply"), self.home.environ
        with (
            Started(words, self.home.project, environ) as first,
            Started(words, self.home.project, environ) as second,
        ):
            reports = [self._read(started.finished(_WITHIN_S)) for started in (first, second)]
        findings = sorted(report.finding for report in reports)
        expected = ["ok (applied)", "unchanged (already_equivalent)"]
        self._check("two_at_once", findings == expected, "; ".join(findings))
        self._remove("removed_after_two_at_once")

    def _interruptions(self, apply_s: float) -> None:
        for moment in INTERRUPTED_AT:
            name = f"interrupted_at_{moment * 100:.0f}_percent"
            with Started(self._words("--apply"), self.home.project, self.home.environ) as started:
                if not started.is_over_within(apply_s * moment):
                    started.interrupt()
                report = self._read(started.finished(_WITHIN_S))
            ended = report.exit_status == 130 or report.finding == "ok (applied)"
            self._check(name, ended, str(report))
            self._check_no_processes(f"no_process_after_{name}")
            again = self._setup("--apply")
            self._check(f"converged_after_{name}", again.finding in CONVERGED, str(again))
            self._remove(f"removed_after_{name}")

    def _remove(self, name: str) -> None:
        report = self._setup("--remove")
        self._check(name, report == Report("ok", "ok (removed)", 0), str(report))

    def _afterwards(
        self, observer: Observer, others: tuple[object, object], real: Mapping[str, bytes | None], installation: str
    ) -> None:
        absent = observer.ours() is None and not observer.client_knows_us()
        self._check("ours_absent", absent, "absent" if absent else "present")
        same = observer.unrelated() == others[0]
        self._check("unrelated_untouched", same, "same" if same else "changed")
        same = observer.rest() == others[1]
        self._check("rest_of_the_file_untouched", same, "same" if same else "changed")
        records = self._records()
        self._check("no_records", records == 0, f"{records} records")
        self._check_modes("modes_afterwards")
        self._check_no_processes("no_process_left")
        leaks = sum(secret in output for secret in self._secrets() for output in self.outputs)
        self._check("reports_tell_nothing", leaks == 0, f"{leaks} leaks in {len(self.outputs)} reports")
        same = real_files(self.real_environ) == real
        self._check("real_client_files_untouched", same, "same" if same else "changed")
        same = self.installation.fingerprint() == installation
        self._check("installation_untouched", same, "same" if same else "changed")

    def _secrets(self) -> tuple[str, ...]:
        """The canary is in every path of the home and in every secret; the rest leads to the installation."""
        return (self.home.canary, str(self.installation.program), str(self.installation.package), "Traceback")

    def _check_modes(self, name: str) -> None:
        """Everything of ours in the state directory: directories 0700, files 0600, nothing else."""
        root = self.home.state
        if not root.is_dir():
            self._check(name, passed=False, seen="no directory")
            return
        wrong = [path for path in (root, *root.rglob("*")) if not _has_mode(path)]
        self._check(name, passed=not wrong, seen=f"{len(wrong)} wrong")

    def _check_no_processes(self, name: str) -> None:
        left = left_of(self.home.canary, within_s=_GONE_WITHIN_S)
        self._check(name, not left, f"{len(left)} processes")

    def _records(self) -> int:
        file = self.home.state / "setup" / FILE
        if not file.exists():
            return 0
        records = json.loads(file.read_bytes()).get("records")
        return len(records) if isinstance(records, list) else -1

    def _check(self, name: str, passed: bool, seen: str) -> None:  # noqa: FBT001 - always a comparison
        self.checks.append(Check(name, passed, seen))

    def _words(self, *options: str) -> tuple[str, ...]:
        return (str(self.installation.program), "setup", *options, "--json", self.target.short)

    def _setup(self, *options: str) -> Report:
        with Started(self._words(*options), self.home.project, self.home.environ) as started:
            return self._read(started.finished(_WITHIN_S))

    def _read(self, done: Finished) -> Report:
        self.outputs += [done.stdout, done.stderr]
        try:
            document = json.loads(done.stdout)
            (finding,) = document["findings"]
            told = f"{_word(finding['status'])} ({_word(finding['code'])})"
            consistent = document["exitCode"] == done.status and document["schemaVersion"] == 1
            return Report(_word(document["status"]) if consistent else "inconsistent", told, done.status)
        except (ValueError, KeyError, TypeError):
            return Report("unreadable", "unreadable", done.status)


def _word(value: Any) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else "unreadable"


def _has_mode(path: Path) -> bool:
    seen = path.lstat()
    if stat.S_ISDIR(seen.st_mode):
        return stat.S_IMODE(seen.st_mode) == 0o700
    return stat.S_ISREG(seen.st_mode) and stat.S_IMODE(seen.st_mode) == 0o600
