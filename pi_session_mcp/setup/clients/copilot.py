"""GitHub Copilot CLI (`copilot`), scope `user`.

Workspaces have registrations of their own, so all calls are made from a neutral directory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pi_session_mcp.setup.clients.answers import compared, json_object, registration_from, same
from pi_session_mcp.setup.clients.base import Inspection, Seen
from pi_session_mcp.setup.clients.program import text_of
from pi_session_mcp.setup.clients.user_scope import UserScopeClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.config.strict_json import Tree
    from pi_session_mcp.setup.clients.base import ClientOutput
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target

_DEFAULTS: Final[Mapping[str, Tree]] = {"tools": ("*",), "type": "local", "source": "user", "enabled": True}
_OURS: Final = ("command", "args", "env")
_EXTRACTION: Final = re.compile(r"Package extraction took \d+ms\n")
"""What the first start after an installation says on stderr."""


class Copilot(UserScopeClient):
    """The adapter; see `base.Client`. Recorded: with both, the user's registration is shown and not the workspace's."""

    __slots__ = ()
    name = "copilot"
    word = "copilot"
    home_variable = "COPILOT_HOME"
    as_json = ("--json", "--show-secrets")  # masked values cannot be compared

    @staticmethod
    def read(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
        """See `read_inspection`."""
        return read_inspection(output, target, intent)


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
