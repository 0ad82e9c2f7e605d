"""GitHub Copilot CLI (`copilot`), scope `user`.

A workspace can have registrations of its own, so all calls are made from a neutral directory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pi_session_mcp.setup.clients.answers import compared, is_names, is_number, json_object, registration_from
from pi_session_mcp.setup.clients.base import Inspection, Seen
from pi_session_mcp.setup.clients.program import text_of
from pi_session_mcp.setup.clients.user_scope import UserScopeClient

if TYPE_CHECKING:
    from pi_session_mcp.setup.clients.base import ClientOutput, Runner, Settings
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target
    from pi_session_mcp.terms.strict_json import Tree

_ALWAYS: Final = frozenset({"command", "args", "env", "tools", "type", "source", "enabled"})
_ALL_TOOLS: Final = ("*",)
_TIMEOUT: Final = "timeout"
_EXTRACTION: Final = re.compile(r"Package extraction took \d+ms\n")
"""What Copilot writes on stderr when it is started for the first time."""


class Copilot(UserScopeClient):
    """The adapter; see `base.Client`. When both scopes have one, Copilot shows the user's registration."""

    __slots__ = ()
    name = "copilot"
    word = "copilot"
    home_variable = "COPILOT_HOME"
    home_below = ".copilot"
    as_json = ("--json", "--show-secrets")  # masked values cannot be compared

    @staticmethod
    def read(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
        """See `read_inspection`."""
        return read_inspection(output, target, intent)

    def has_home(self) -> bool:
        """See `base.Client`. Copilot makes what is missing."""
        return self._program.can_have_home()

    def can_add(self, settings: Settings) -> bool:
        """See `base.Client`. The list of processes would show values of variables. Tools are one word."""
        tools = settings.get("tools", ())
        is_one_word = isinstance(tools, tuple) and not any("," in str(tool) or not tool for tool in tools)
        return settings.keys() <= {_TIMEOUT, "tools"} and is_one_word and isinstance(settings.get(_TIMEOUT, 0), int)

    def options(self, settings: Settings) -> tuple[str, ...]:
        """See `UserScopeClient`."""
        timeout, tools = settings.get(_TIMEOUT), settings.get("tools")
        of_timeout = () if timeout is None else ("--timeout", str(timeout))
        return of_timeout if not isinstance(tools, tuple) else (*of_timeout, "--tools", ",".join(map(str, tools)))

    async def change(self, run: Runner, target: Target, intent: Registration) -> bool:  # noqa: ARG002 - it cannot
        """See `base.Client`."""
        return False


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
    if entry.keys() - {_TIMEOUT} != _ALWAYS or not is_names(entry["tools"]):
        return Inspection(Seen.UNSUPPORTED)
    if not isinstance(entry["type"], str) or not isinstance(entry["source"], str):
        return Inspection(Seen.UNSUPPORTED)
    if not isinstance(entry["enabled"], bool) or not is_number(entry.get(_TIMEOUT, 0)):
        return Inspection(Seen.DIVERGENT)
    settings: dict[str, Tree] = {
        key: entry[key] for key in (_TIMEOUT, "tools") if key in entry and entry[key] != _ALL_TOOLS
    }
    return compared(registration_from(entry), intent, settings, is_disabled=not entry["enabled"])


def _says_absent(output: ClientOutput, name: str) -> bool:
    text = text_of(output.stderr)
    if output.exit_code != 1 or output.stdout or text is None:
        return False
    answer = _EXTRACTION.sub("", text, count=1) if _EXTRACTION.match(text) else text
    first, _, rest = answer.partition("\n")
    return first == f'Error: Server "{name}" not found.' and (not rest or rest.startswith("\nAvailable servers:\n  "))
