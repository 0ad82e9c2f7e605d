"""GitHub Copilot CLI (`copilot`), scope `user`.

Workspaces have registrations of their own, so all calls are made from a neutral directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pi_session_mcp.setup.clients.answers import compared, json_object, registration_from, same
from pi_session_mcp.setup.clients.base import Discovery, Inspection, Seen, can_be_registered
from pi_session_mcp.setup.clients.program import Program, text_of
from pi_session_mcp.setup.targets import SCOPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.config.strict_json import Tree
    from pi_session_mcp.setup.clients.base import ClientOutput, Runner, Surroundings
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target

_DEFAULTS: Final[Mapping[str, Tree]] = {"tools": ("*",), "type": "local", "source": "user", "enabled": True}
_OURS: Final = ("command", "args", "env")
_EXTRACTION: Final = re.compile(r"Package extraction took \d+ms\n")
"""What the first start after an installation says on stderr."""


@dataclass(frozen=True, slots=True)
class Copilot:
    """The adapter; see `base.Client`."""

    surroundings: Surroundings
    name: str = field(default="copilot", init=False)
    scopes: tuple[str, ...] = field(default=SCOPES["copilot"], init=False)

    @property
    def _program(self) -> Program:
        return Program("copilot", "COPILOT_HOME", self.surroundings)

    def home_is_usable(self) -> bool:
        """See `base.Client`."""
        return self._program.home_is_usable()

    def accepts(self, target: Target) -> bool:
        """See `base.Client`."""
        return target.scope in self.scopes

    def place(self, target: Target) -> str:
        """See `base.Client`."""
        return self._program.place(target, None)

    async def discover(self, run: Runner) -> Discovery:
        """See `base.Client`."""
        return await self._program.discover(run)

    async def inspect(self, run: Runner, target: Target, intent: Registration) -> Inspection:
        """See `base.Client`. Secrets are asked for because masked values cannot be compared."""
        words = ("mcp", "get", target.alias, "--json", "--show-secrets")
        return read_inspection(await run.run(self._program.from_neutral(*words)), target, intent)

    async def hidden_by(self, run: Runner, target: Target) -> str | None:  # noqa: ARG002 - the user's own comes first
        """See `base.Client`. Recorded: with both, the user's registration is shown."""
        return None

    async def add(self, run: Runner, target: Target, intent: Registration) -> bool:
        """See `base.Client`."""
        if not can_be_registered(intent):
            return False
        environment = [word for key, value in intent.environment.items() for word in ("--env", f"{key}={value}")]
        words = ("mcp", "add", target.alias, *environment, "--", intent.command, *intent.arguments)
        return (await run.run(self._program.from_neutral(*words, mutates=True))).exit_code == 0

    async def remove(self, run: Runner, target: Target) -> bool:
        """See `base.Client`."""
        output = await run.run(self._program.from_neutral("mcp", "remove", target.alias, mutates=True))
        return output.exit_code == 0


def read_inspection(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
    """What an answer of `copilot mcp get --json --show-secrets` says about `target`. Pure."""
    if _says_absent(output, target.alias):
        return Inspection(Seen.ABSENT)
    shown = json_object(output.stdout) if output.exit_code == 0 else None
    entry = shown.get(target.alias) if shown is not None and shown.keys() == {target.alias} else None
    if not isinstance(entry, dict):
        return Inspection(Seen.UNSUPPORTED)
    if isinstance(entry.get("source"), str) and entry["source"] != target.scope:
        return Inspection(Seen.DIVERGENT, other_scope=str(entry["source"]))
    if isinstance(entry.get("type"), str) and entry["type"] != "local":
        return Inspection(Seen.DIVERGENT)
    if entry.keys() != {*_OURS, *_DEFAULTS}:
        return Inspection(Seen.UNSUPPORTED)
    if not all(same(entry[key], value) for key, value in _DEFAULTS.items()):
        return Inspection(Seen.DIVERGENT)
    return compared(registration_from(entry), intent)


def _says_absent(output: ClientOutput, name: str) -> bool:
    text = text_of(output.stderr)
    if output.exit_code != 1 or output.stdout or text is None:
        return False
    answer = _EXTRACTION.sub("", text, count=1) if _EXTRACTION.match(text) else text
    first, _, rest = answer.partition("\n")
    return first == f'Error: Server "{name}" not found.' and (not rest or rest.startswith("\nAvailable servers:\n  "))
