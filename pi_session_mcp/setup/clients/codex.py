"""Codex (`codex`), scope `user`.

`codex mcp add` overwrites silently and loses what was set by hand, and `codex mcp remove` succeeds for an absent name:
only `get` proves anything. A trusted project's `.codex/config.toml` is merged over the user's, so all calls are made
from a neutral directory.
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

_DEFAULTS: Final[Mapping[str, Tree]] = {
    "enabled": True,
    "disabled_reason": None,
    "enabled_tools": None,
    "disabled_tools": None,
    "startup_timeout_sec": None,
    "tool_timeout_sec": None,
}
_TRANSPORT_DEFAULTS: Final[Mapping[str, Tree]] = {"type": "stdio", "env_vars": (), "cwd": None}
_BACKTRACE: Final = re.compile(r"(?<=\n)\nStack backtrace:\n(?: +(?:\d+:|at) [^\n]*\n)*\Z")
"""What follows an error when `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` is set; only release builds show no names."""
_OURS: Final = ("command", "args", "env")


class Codex(UserScopeClient):
    """The adapter; see `base.Client`. A project's fields are merged over the user's, and Codex does not say so."""

    __slots__ = ()
    name = "codex"
    word = "codex"
    home_variable = "CODEX_HOME"
    as_json = ("--json", "-c", "project_root_markers=[]")  # else one of the operator's could make a project of a home

    @staticmethod
    def read(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
        """See `read_inspection`."""
        return read_inspection(output, target, intent)


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
    *warnings, last, end = ["", *_BACKTRACE.sub("", text).split("\n")]
    return (
        end == ""
        and last == f"Error: No MCP server named '{name}' found."
        and all(not line or line.startswith("WARNING: ") for line in warnings)
    )
