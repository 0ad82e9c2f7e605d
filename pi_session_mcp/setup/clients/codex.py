"""Codex (`codex`), scope `user`.

`codex mcp add` overwrites silently and loses what was set by hand, and `codex mcp remove` succeeds for an absent name:
only `get` proves anything. A trusted project's `.codex/config.toml` is merged over the user's, so all calls are made
from a neutral directory.
"""

from __future__ import annotations

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

_DEFAULTS: Final[Mapping[str, Tree]] = {
    "enabled": True,
    "disabled_reason": None,
    "enabled_tools": None,
    "disabled_tools": None,
    "startup_timeout_sec": None,
    "tool_timeout_sec": None,
}
_TRANSPORT_DEFAULTS: Final[Mapping[str, Tree]] = {"type": "stdio", "env_vars": (), "cwd": None}
_OURS: Final = ("command", "args", "env")


@dataclass(frozen=True, slots=True)
class Codex:
    """The adapter; see `base.Client`."""

    surroundings: Surroundings
    name: str = field(default="codex", init=False)
    scopes: tuple[str, ...] = field(default=SCOPES["codex"], init=False)

    @property
    def _program(self) -> Program:
        return Program("codex", "CODEX_HOME", self.surroundings)

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
        """See `base.Client`."""
        output = await run.run(self._program.from_neutral("mcp", "get", target.alias, "--json"))
        return read_inspection(output, target, intent)

    async def hidden_by(self, run: Runner, target: Target) -> str | None:  # noqa: ARG002 - Codex never says
        """See `base.Client`. Codex merges a project's fields over the user's and does not say so."""
        return None

    async def add(self, run: Runner, target: Target, intent: Registration) -> bool:
        """See `base.Client`."""
        if not can_be_registered(intent):
            return False
        environment = [word for key, value in intent.environment.items() for word in ("--env", f"{key}={value}")]
        words = ("mcp", "add", target.alias, *environment, "--", intent.command, *intent.arguments)
        return (await run.run(self._program.from_neutral(*words, mutates=True))).exit_code == 0

    async def remove(self, run: Runner, target: Target) -> bool:
        """See `base.Client`. True for an absent name too."""
        output = await run.run(self._program.from_neutral("mcp", "remove", target.alias, mutates=True))
        return output.exit_code == 0


def read_inspection(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
    """What an answer of `codex mcp get --json` says about `target`. Pure.

    With success stderr is not read: Codex warns there about its own installation.
    """
    if _says_absent(output, target.alias):
        return Inspection(Seen.ABSENT)
    shown = json_object(output.stdout) if output.exit_code == 0 else None
    if shown is None or shown.get("name") != target.alias or shown.keys() != {"name", "transport", *_DEFAULTS}:
        return Inspection(Seen.UNSUPPORTED)
    transport = shown["transport"]
    if not isinstance(transport, dict):
        return Inspection(Seen.UNSUPPORTED)
    if isinstance(transport.get("type"), str) and transport["type"] != "stdio":
        return Inspection(Seen.DIVERGENT)
    if transport.keys() != {*_OURS, *_TRANSPORT_DEFAULTS}:
        return Inspection(Seen.UNSUPPORTED)
    if not _is_default(shown, _DEFAULTS) or not _is_default(transport, _TRANSPORT_DEFAULTS):
        return Inspection(Seen.DIVERGENT)
    return compared(registration_from(transport), intent)


def _is_default(shown: Mapping[str, Tree], defaults: Mapping[str, Tree]) -> bool:
    return all(same(shown[key], value) for key, value in defaults.items())


def _says_absent(output: ClientOutput, name: str) -> bool:
    text = text_of(output.stderr)
    if output.exit_code != 1 or output.stdout or text is None:
        return False
    *warnings, last, end = ["", *text.split("\n")]
    return (
        end == ""
        and last == f"Error: No MCP server named '{name}' found."
        and all(not line or line.startswith("WARNING: ") for line in warnings)
    )
