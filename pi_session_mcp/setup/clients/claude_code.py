"""Claude Code (`claude`), scopes `user`, `project` and `local`.

`claude mcp get` starts the registered server to see whether it is healthy. It shows the registration of one scope, and
has no JSON. It shows the first of these: `local` (kept for the git repository, or else for the directory), an approved
`.mcp.json` here or above, `user`, and a `.mcp.json` that is not approved. So a user scope is looked at from a neutral
directory. When another scope is shown in place of `local`, nothing is registered there. When another scope is shown in
place of `project`, Claude Code is asked again without its home: then it can show nothing else.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pi_session_mcp.platform.reading import read_regular
from pi_session_mcp.setup.clients.answers import compared
from pi_session_mcp.setup.clients.base import (
    NO_SETTINGS,
    CommandFailed,
    CommandFailure,
    Discovery,
    Inspection,
    Seen,
    can_be_registered,
)
from pi_session_mcp.setup.clients.program import Program, text_of
from pi_session_mcp.setup.registration import ARGUMENTS, Registration
from pi_session_mcp.setup.targets import SCOPES

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.setup.clients.base import AskedFrom, ClientCommand, ClientOutput, Runner, Settings
    from pi_session_mcp.setup.targets import Target

_TIMEOUT: Final = "timeout"
_HEALTH_CHECK_MS: Final = "1"
"""The text of the registration does not need a healthy server, and waiting for a hanging one takes 30 s."""

_POINTER_LIMIT_BYTES: Final = 64 * 1024
"""A `.git` that is a file has one line that says where the repository is."""

_SCOPE_OF: Final = {
    "User config (available in all your projects)": "user",
    "Project config (shared via .mcp.json)": "project",
    "Local config (private to you in this project)": "local",
}
_BLOCK: Final = re.compile(
    r"(?P<name>[^\n]+):\n"
    r"  Scope: (?P<scope>[^\n]+)\n"
    r"  Status: [^\n]+\n"
    r"(?:  Issue: [^\n]+\n)?"
    r"  Type: stdio\n"
    r"  Command: (?P<command>[^\n]+)\n"
    r"  Args:(?P<arguments>[^\n]*)\n"
    r"  Environment:\n"
    r"(?P<environment>(?:    [^\n=]+=[^\n]*\n)*)"
    r"(?:  Timeout: (?P<timeout>[0-9]{1,15})ms(?: \(ignored: below 1000ms minimum\))?\n)?"
    r"\n"
    r"(?P<removal>To remove this server, run: [^\n]+)\n"
)
_OTHER_BLOCK: Final = re.compile(
    r"(?P<name>[^\n]+):\n  Scope: (?P<scope>[^\n]+)\n(?:  [^\n]*\n)+\n(?P<removal>To remove this server, run: [^\n]+)\n"
)
"""How a registration with other fields begins: that of a remote server."""
_RED: Final = re.compile(r"\A\x1b\[0m\x1b\[31m\x1b\[31m(.*)\x1b\[39m\x1b\[0m(?=\n\Z)")
"""How an error looks when `FORCE_COLOR` is set, whatever `NO_COLOR` says. Registrations are never coloured."""
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """The adapter; see `base.Client`."""

    asked_from: AskedFrom
    name: str = field(default="claude-code", init=False)
    scopes: tuple[str, ...] = field(default=SCOPES["claude-code"], init=False)

    @property
    def _program(self) -> Program:
        return Program("claude", "CLAUDE_CONFIG_DIR", "", self.asked_from)

    def home_is_usable(self) -> bool:
        """See `base.Client`."""
        return self._program.home_is_usable()

    def has_home(self) -> bool:
        """See `base.Client`. Claude Code makes what is missing."""
        return self._program.can_have_home()

    def accepts(self, target: Target) -> bool:
        """`local` only at the top of a repository; `project` only where no other `.mcp.json` answers from above."""
        directory = self.asked_from.directory
        match target.scope:
            case "local":
                return is_own_project(directory)
            case "project":
                return not any(_may_exist(parent / ".mcp.json") for parent in directory.parents)
            case _:
                return True

    def place(self, target: Target) -> str:
        """See `base.Client`."""
        return self._program.place(target, None if target.scope == "user" else self.asked_from.directory)

    async def discover(self, run: Runner) -> Discovery:
        """See `base.Client`."""
        return await self._program.discover(run)

    async def inspect(self, run: Runner, target: Target, intent: Registration) -> Inspection:
        """See `base.Client`. Starts what is registered, for a moment."""
        output = await run.run(self._command(target, "get", target.alias, MCP_TIMEOUT=_HEALTH_CHECK_MS))
        inspection = read_inspection(output, target, intent)
        if target.scope == "user" or inspection.other_scope is None:
            return inspection
        if target.scope == "local":
            return replace(
                inspection, seen=Seen.ABSENT
            )  # this scope comes before all others, so it would have been shown
        command = self._command(target, "get", target.alias, MCP_TIMEOUT=_HEALTH_CHECK_MS, CLAUDE_CONFIG_DIR=os.devnull)
        again = read_inspection(await run.run(command), target, intent)
        # Versions before 2.1 do not work without a home that can be written. Then the first answer counts.
        return inspection if again.seen is Seen.UNSUPPORTED or again.other_scope is not None else again

    async def hidden_by(self, run: Runner, target: Target) -> str | None:
        """See `base.Client`. No scope hides the local one."""
        if target.scope == "local":
            return None
        directory = self.asked_from.directory
        command = self._program.call(directory, "mcp", "get", target.alias, MCP_TIMEOUT=_HEALTH_CHECK_MS)
        try:
            shown = _shown_scope(await run.run(command), target.alias)
        except CommandFailed as failed:
            if failed.kind is CommandFailure.UNKNOWN_PROCESSES:
                raise
            return None
        return None if shown == target.scope else shown

    def can_add(self, settings: Settings) -> bool:
        """See `base.Client`. The list of processes would show values of variables."""
        return settings.keys() <= {_TIMEOUT}

    async def add(self, run: Runner, target: Target, intent: Registration, settings: Settings = NO_SETTINGS) -> bool:
        """See `base.Client`. `-e` takes all words up to the next option, so `--` comes before the name."""
        if not can_be_registered(intent) or not self.can_add(settings):
            return False
        if settings:
            entry = {"command": intent.command, "args": intent.arguments, "env": dict(intent.environment), **settings}
            whole = ("--scope", target.scope, "--", target.alias, json.dumps({"type": "stdio", **entry}))
            return (await run.run(self._command(target, "add-json", *whole, mutates=True))).exit_code == 0
        environment = [word for key, value in intent.environment.items() for word in ("-e", f"{key}={value}")]
        words = (*environment, "--", target.alias, intent.command, *intent.arguments)
        output = await run.run(self._command(target, "add", "--scope", target.scope, *words, mutates=True))
        return output.exit_code == 0

    async def change(self, run: Runner, target: Target, intent: Registration) -> bool:  # noqa: ARG002 - it cannot
        """See `base.Client`."""
        return False

    async def remove(self, run: Runner, target: Target) -> bool:
        """See `base.Client`."""
        words = ("--scope", target.scope, "--", target.alias)
        output = await run.run(self._command(target, "remove", *words, mutates=True))
        return output.exit_code == 0

    def _command(self, target: Target, *words: str, mutates: bool = False, **settings: str) -> ClientCommand:
        if target.scope == "user":
            return self._program.from_neutral("mcp", *words, mutates=mutates, **settings)
        return self._program.call(self.asked_from.directory, "mcp", *words, mutates=mutates, **settings)


def is_own_project(directory: Path) -> bool:
    """Whether Claude Code keeps local registrations under `directory` itself.

    In a repository it keeps them under the repository's top, and for linked worktrees under the top of the main one.
    The nearest top counts, since a home may be a repository, too.
    """
    mark = directory / ".git"
    if os.path.isdir(mark):
        return True
    if not _may_exist(mark):
        return not any(_may_exist(parent / ".git") for parent in directory.parents)
    try:
        pointer = os.fsdecode(read_regular(mark, max_bytes=_POINTER_LIMIT_BYTES))
    except (OSError, ValueError):
        return False
    return not _may_exist(directory / pointer.removeprefix("gitdir:").strip() / "commondir")


def _may_exist(path: Path) -> bool:
    """Whether something exists there, or that cannot be known."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def read_inspection(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
    """What an answer of `claude mcp get` says about `target`. Pure.

    An answer that is not exactly one of the recorded forms is unsupported.
    """
    if _says_absent(output, target.alias):
        return Inspection(Seen.ABSENT)
    found = _block(output, target.alias)
    if found is None:
        return Inspection(Seen.UNSUPPORTED)
    scope = _SCOPE_OF[found["scope"]]
    if scope != target.scope:
        return Inspection(Seen.DIVERGENT, other_scope=scope)
    registration = _registration(found)
    if registration is None:
        return Inspection(Seen.DIVERGENT)
    timeout = found["timeout"]
    return compared(registration, intent, {} if timeout is None else {_TIMEOUT: int(timeout)})


def _says_absent(output: ClientOutput, name: str) -> bool:
    text = text_of(output.stderr)
    if output.exit_code != 1 or output.stdout or text is None:
        return False
    text = _RED.sub(r"\1", text)
    one_line = text.endswith("\n") and text.count("\n") == 1 and not _CONTROL.search(text)
    recent = re.match(rf'No MCP server named "{re.escape(name)}"\. \S', text) is not None
    return one_line and (recent or text == f"No MCP server found with name: {name}\n")


def _shown_scope(output: ClientOutput, name: str) -> str | None:
    found = _block(output, name)
    return None if found is None else _SCOPE_OF[found["scope"]]


def _block(output: ClientOutput, name: str) -> re.Match[str] | None:
    """The answer as a registration under `name` in a known scope, if that is all of it."""
    text = text_of(output.stdout)
    if output.exit_code != 0 or output.stderr or text is None or _CONTROL.search(text):
        return None
    found = _BLOCK.fullmatch(text) or _OTHER_BLOCK.fullmatch(text)
    if found is None or found["name"] != name or found["scope"] not in _SCOPE_OF:
        return None
    scope = _SCOPE_OF[found["scope"]]
    removals = (f"claude mcp remove {name} -s {scope}", f'claude mcp remove "{name}" -s {scope}')
    return found if found["removal"].removeprefix("To remove this server, run: ") in removals else None


def _registration(found: re.Match[str]) -> Registration | None:
    """What a block shows, if it is certain: arguments are joined by spaces, so only ours can be recognized."""
    if found.re is not _BLOCK or found["arguments"] != f" {' '.join(ARGUMENTS)}":
        return None
    pairs = [line[4:].split("=", 1) for line in found["environment"].split("\n")[:-1]]
    environment = {key: value for key, value in pairs}  # noqa: C416 - dict() would not check that there are two
    registration = Registration(found["command"], ARGUMENTS, environment)
    return registration if len(environment) == len(pairs) and can_be_registered(registration) else None
