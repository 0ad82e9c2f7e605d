"""A real client delegates to a real Pi in a throw-away home, and is looked at from outside."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from acceptance.errors import HarnessError
from acceptance.live.clients import TOOLS
from acceptance.live.delegations import DELEGATIONS, ask_unapproved, leave_running, wait_for_ever
from acceptance.live.model import ClientModel, Dialog
from acceptance.live.place import TRESPASSES, Place
from acceptance.live.watching import StartedClient, end_all, left_of
from acceptance.observer import Observer, real_files
from acceptance.processes import Started
from acceptance.record import Run
from acceptance.scenario import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from acceptance.homes import Home
    from acceptance.installations import Installation
    from acceptance.live.clients import LiveClient
    from acceptance.live.delegations import Delegation, Seen
    from acceptance.live.talk import Script
    from acceptance.processes import Finished
    from acceptance.programs import Program

_WITHIN_S: Final = 300
_BEGINS_WITHIN_S: Final = 300
_GONE_WITHIN_S: Final = 60
_VARYING: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


@dataclass
class Live:
    """The runs of one client in one home."""

    home: Home
    program: Program
    client: LiveClient
    installation: Installation
    real_environ: Mapping[str, str]
    say: Callable[[str], None]
    runs: list[Run] = field(default_factory=list)
    approved: bool = False

    def run(self) -> list[Run]:
        """All of them. Raises `HarnessError` when the client does not work as a client."""
        with ExitStack() as opened:
            self.model = opened.enter_context(ClientModel(self.client.dialect()))
            self.place = opened.enter_context(Place(self.home, self.model.origin))
            self.model.lead_to(self.place.port)
            opened.callback(end_all, self.home.canary)
            self._run()
        return self.runs

    def _run(self) -> None:
        self.client.prepare(self.home, self.model.origin)
        observer = Observer(self.home, self.program, self.client.target)
        real = real_files(self.real_environ)
        self.say("without us")
        self.usual = _lines(self._delegate(Dialog(_say_ok())).stderr)
        self._keep("registration", [self._setup("--apply", "ok (applied)")])
        registered = observer.registrations()
        self.say("unapproved")
        self._keep("unapproved", list(self._unapproved()))
        self.approved = True
        for delegation in DELEGATIONS:
            self.say(delegation.name)
            self._keep(delegation.name, self._delegated(delegation))
        for way in self.client.exits:
            self.say(f"ended by {way}")
            self._keep(f"ended_by_{way}", self._ended(way))
        same = observer.registrations() == registered
        removed = self._setup("--remove", "ok (removed)")
        checks = [_check("registration_unchanged", same), removed]
        checks.append(_check("real_client_files_untouched", real_files(self.real_environ) == real))
        checks.append(Check("hosts_use_the_proxy", self.model.tunnels > 0, f"{self.model.tunnels} tunnels"))
        checks.append(Check("no_other_traffic", not self.model.strange, f"{len(self.model.strange)} requests"))
        self._keep("afterwards", checks)

    def _delegated(self, delegation: Delegation) -> list[Check]:
        seen: Seen = {}
        dialog = Dialog(delegation.script(seen))
        done = self._delegate(dialog, delegation.prompt)
        checks = [Check("exit", done.status == 0, f"exit {done.status}"), *self._checks(dialog, fixed=delegation.fixed)]
        checks.append(_check("script_finished", dialog.is_over))
        if not dialog.is_over:
            return checks
        calls = len(dialog.calls)
        checks.append(Check("calls", calls == delegation.calls == len(dialog.results), f"{calls} calls"))
        checks += [_check(name, passed) for name, passed in delegation.verdicts(seen)]
        news = _lines(done.stderr) - self.usual
        checks.append(Check("stderr_as_without_us", not news, f"{len(news)} other lines"))
        if delegation.name == "analysis":
            checks += self._trespasses()
        return checks

    def _unapproved(self) -> Iterator[Check]:
        """Nothing that our tools may do is done without the words that approve it."""
        told: list[bool] = []
        dialog = Dialog(ask_unapproved(told))
        done = self._delegate(dialog, "Have the code word found, unasked.")
        yield Check("exit", done.status == 0, f"exit {done.status}")
        yield Check("done", told == list(self.client.unapproved), ", ".join("done" if each else "not" for each in told))
        yield _check("model_not_asked", not self.place.model.requests)
        yield from self._checks(dialog, fixed=False)

    def _ended(self, way: str) -> list[Check]:
        asked = len(self.place.model.requests)
        has_begun = partial(self.place.model.wait_until_requested, asked + 1, _BEGINS_WITHIN_S)
        dialog = Dialog(leave_running(has_begun) if way == "end" else wait_for_ever())
        with self._started(dialog, f"Have something begun ({way}).") as started:
            running = has_begun()
            if way != "end":
                running = dialog.wait_until_called("pi_turn_get", 1, _BEGINS_WITHIN_S) and running
                started.end(way)
            done = started.finished(_WITHIN_S)
        status = self.client.exits[way]
        checks = [_check("turn_was_running", running), Check("exit", done.status == status, f"exit {done.status}")]
        checks += self._checks(dialog, fixed=True)
        checks.append(_check("model_left_alone", self.place.model.wait_until_idle(_GONE_WITHIN_S)))
        return checks

    def _checks(self, dialog: Dialog, *, fixed: bool) -> Iterator[Check]:
        """What has to be so after every run."""
        missing = set(TOOLS) - (dialog.first_offered or set())
        yield Check("tools_in_first_request", not missing, f"{len(missing)} missing")
        left = left_of(self.home.canary, within_s=_GONE_WITHIN_S)
        yield Check("no_process_left", not left, f"{len(left)} processes")
        yield _check("files_as_expected", self.place.digests() == self.place.expected(fixed=fixed))
        leaks = sum(self.home.canary in text for text in dialog.results.values())
        yield Check("results_tell_nothing", leaks == 0, f"{leaks} leaks in {len(dialog.results)} results")

    def _trespasses(self) -> Iterator[Check]:
        tried = [call for request in self.place.model.requests for call in _called(request)]
        yield _check("trespasses_were_tried", all(call.tool in tried for call in TRESPASSES))
        yield _check("outside_was_not_read", not self.place.told_pi())

    def _setup(self, option: str, finding: str) -> Check:
        words = (str(self.installation.program), "setup", option, "--json", self.client.target.short)
        with Started(words, self.home.project, self.home.environ) as started:
            done = started.finished(_WITHIN_S)
        try:
            (found,) = json.loads(done.stdout)["findings"]
            told = f"{found['status']} ({found['code']})"
        except (ValueError, KeyError, TypeError):
            told = "unreadable"
        if told != finding:
            raise HarnessError(f"setup {option} said {told}")
        return Check(f"setup{option.replace('--', '_')}", passed=True, seen=told)

    def _delegate(self, dialog: Dialog, prompt: str = "Say ok.") -> Finished:
        with self._started(dialog, prompt) as started:
            return started.finished(_WITHIN_S)

    def _started(self, dialog: Dialog, prompt: str) -> StartedClient:
        self.model.dialog = dialog
        proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.model.origin)
        proxy |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        environ = {**self.home.environ, **proxy, **self.client.environ(self.model.origin)}
        program = str(self.program.directory / self.program.word)
        options = self.client.options(prompt)
        if self.approved:
            options += self.client.approvals
        return StartedClient((program, *options), self.home.project, environ)

    def _keep(self, name: str, checks: list[Check]) -> None:
        self.runs.append(Run(self.client.target.short, f"live {name}", tuple(checks)))


def _say_ok() -> Script:
    yield from ()
    return "ok"


def _called(request: Mapping[str, list[dict[str, object]]]) -> Iterator[str]:
    for message in request["messages"]:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            yield call["function"]["name"]


def _lines(text: str) -> set[str]:
    """The lines of a client's stderr without what varies: times and ids."""
    return {_VARYING.sub("", line) for line in text.splitlines()}


def _check(name: str, passed: bool) -> Check:  # noqa: FBT001 - always a comparison
    return Check(name, passed, "so" if passed else "not so")
