"""From an empty home to a delegation, by doing what the program itself says and nothing else.

Whoever does it knows the program's name, which client is meant, and which project. What the program prints for people
is read, and the command or the act that it names is done, until the client can be started.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from acceptance.live.model import ClientModel, Dialog
from acceptance.live.talk import Use
from acceptance.live.watching import StartedClient, end_all, left_of
from acceptance.processes import Started
from acceptance.record import Run
from acceptance.scenario import Check
from pi_session_mcp.demo.model import Call, Echo, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from acceptance.homes import Home
    from acceptance.installations import Installation
    from acceptance.live.clients import LiveClient
    from acceptance.live.talk import Script
    from acceptance.processes import Finished
    from acceptance.programs import Program

_REACH: Final = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "npm_config_registry")
"""How this machine reaches the package registry, for who installs the runtime in an empty home."""
PROGRAM: Final = "pi-session-mcp"
MAX_STEPS: Final = 24
_WITHIN_S: Final = 900
_GONE_WITHIN_S: Final = 60
_PROVIDER: Final = "anthropic"
_CODE_WORD: Final = "heron-41"
_PROMPT: Final = "Look into notes.txt and tell me the code word."

_BEGIN: Final = re.compile(r"Begin with ([a-z]+)")
_NEXT: Final = re.compile(rf"Next: ({PROGRAM}(?: [a-z-]+(?::[a-z]+)?)*)")
_NAMED: Final = re.compile(rf"`({PROGRAM} [^`]+)`")
_OPERATION: Final = re.compile(r"Run (--(?:apply|verify))\b")
_OPTION: Final = re.compile(r"add --(workspace|provider|model)\b")
_RESTART: Final = "Restart the client"
_LOGIN: Final = re.compile(r"/login|log in|API key")
_TARGETS: Final = re.compile(r"\b[a-z-]+:(?:user|project|local)\b")


@dataclass
class FirstSteps:
    """One client in one empty home. `transcript` is what was typed and done, with exit statuses."""

    home: Home
    program: Program
    client: LiveClient
    installation: Installation
    say: Callable[[str], None]
    transcript: list[str] = field(default_factory=list)
    is_logged_in: bool = False
    chosen: str = ""

    def run(self) -> Run:
        """All of it."""
        with ExitStack() as opened:
            self.pi_model = opened.enter_context(ScriptedModel())
            self.model = opened.enter_context(ClientModel(self.client.dialect()))
            opened.callback(end_all, self.home.canary)
            self.client.prepare(self.home, self.model.origin)
            checks = list(self._checks())
        return Run(self.client.target.short, "live from_nothing", tuple(checks))

    def _checks(self) -> list[Check]:
        arrived = self._walk()
        checks = [Check("led_to_the_client", arrived, f"{len(self.transcript)} steps")]
        if not arrived:
            return checks
        dialog = Dialog(_delegate(self.pi_model))
        done = self._start_client(dialog)
        told = " ".join(dialog.results.values())
        checks += [
            Check("client_exit", done.status == 0, f"exit {done.status}"),
            _check("script_finished", passed=dialog.is_over),
            _check("pi_answered", passed=_CODE_WORD in told),
            _check("no_process_left", passed=not left_of(self.home.canary, within_s=_GONE_WITHIN_S)),
        ]
        return checks

    def _walk(self) -> bool:
        """Whether the program's words led to the client."""
        command: str | None = PROGRAM
        for _ in range(MAX_STEPS):
            if command is None:
                return False
            said = self._type(command)
            if _RESTART in said and "--verify" in command:
                return True
            command = self._next(command, said)
        return False

    def _type(self, command: str) -> str:
        """What a person reads after typing this, as one line."""
        with Started(command.split(), self.home.directory, self._environ()) as started:
            done = started.finished(_WITHIN_S)
        self._note(f"$ {command}  [exit {done.status}]")
        return " ".join((done.stdout + done.stderr).split())

    def _next(self, command: str, said: str) -> str | None:
        """What the last output says is to be typed now; what it asks a person to do is done first."""
        if option := _OPTION.search(said):
            return f"{command} --{option[1]} {self._answer(option[1], said)}"
        if _LOGIN.search(said) and not self.is_logged_in:
            self._log_in()
        if operation := _OPERATION.search(said):
            return f"{PROGRAM} setup {operation[1]} {self.client.target.short}"
        if (found := _NEXT.search(said)) and found[1] != command:
            return found[1]
        if named := [name for name in _NAMED.findall(said) if name != command]:
            return str(named[0])
        if begin := _BEGIN.search(said):
            return f"{PROGRAM} {begin[1]}"
        if self.client.target.short in _TARGETS.findall(said) and self.client.target.short not in command:
            return f"{command} {self.client.target.short}"
        return command if self.transcript[-1].startswith("#") else None

    def _answer(self, option: str, said: str) -> str:
        """A name for what is missing; of providers and models, one that was listed."""
        if option == "workspace":
            return f"shop={self.home.project}"
        listed = re.split(r", | ", said.partition(f"{option}s ")[2])
        answer = _PROVIDER if option == "provider" and _PROVIDER in listed else listed[0]
        self.chosen = answer
        return answer

    def _log_in(self) -> None:
        """As the program says: a key in Pi's own file. The second file stands for the provider's place in the world."""
        agent_directory = self.home.directory / ".pi" / "agent"
        agent_directory.mkdir(parents=True, exist_ok=True)
        stored = {_PROVIDER: {"type": "api_key", "key": f"key-{self.home.canary}"}}
        (agent_directory / "auth.json").write_text(json.dumps(stored), "utf-8")
        elsewhere = {
            "baseUrl": self.pi_model.base_url,
            "api": "openai-completions",
            "models": [{"id": self.chosen, "reasoning": True}],
        }
        models = {"providers": {_PROVIDER: elsewhere}}
        (agent_directory / "models.json").write_text(json.dumps(models), "utf-8")
        self.is_logged_in = True
        self._note("# the provider's key is put into Pi's auth.json")

    def _start_client(self, dialog: Dialog) -> Finished:
        self.model.dialog = dialog
        proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.model.origin)
        proxy |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        environ = {**self._environ(), **proxy, **self.client.environ(self.model.origin)}
        words = (self.program.word, *self.client.options("Let Pi find the code word."), *self.client.approvals)
        self._note(f"$ {self.program.word} …")
        with StartedClient(words, self.home.project, environ) as started:
            return started.finished(_WITHIN_S)

    def _environ(self) -> Mapping[str, str]:
        """That of a terminal in which the program and the client can be typed; an install may ask the registry."""
        own = str(self.installation.program.parent)
        path = os.pathsep.join((own, self.home.environ["PATH"]))
        reach = {name: os.environ[name] for name in _REACH if name in os.environ}
        return {**self.home.environ, **reach, "PATH": path}

    def _note(self, line: str) -> None:
        self.transcript.append(line)
        self.say(line.replace(str(self.home.directory), "~"))


def _delegate(model: ScriptedModel) -> Script:
    """What the client's model does with what it is offered; it knows no alias beforehand."""
    model.on(_PROMPT, Call("read", {"path": "notes.txt"}), Echo())
    (offered,) = yield [Use("pi_capabilities_get")]
    workspace = offered["workspaces"][0]["alias"]
    profile = offered["executionProfiles"][0]["alias"]
    (started,) = yield [Use("pi_session_start", {"workspace": workspace, "executionProfile": profile})]
    session = started["session"]["id"]
    yield [Use("pi_session_prompt", {"sessionId": session, "prompt": _PROMPT, "waitMs": 50_000})]
    yield [Use("pi_session_close", {"sessionId": session})]
    return "It is done."


def _check(name: str, *, passed: bool) -> Check:
    return Check(name, passed, "so" if passed else "not so")
