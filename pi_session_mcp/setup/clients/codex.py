"""Codex (`codex`), scope `user`.

`codex mcp add` overwrites silently and loses what was set by hand. `codex mcp remove` succeeds for an absent name. So
only `get` proves anything. `get` does not show everything that can be set by hand (`required`, approvals). So a
registration is changed in its place, by the configuration requests of `codex app-server`. Codex merges the
`.codex/config.toml` of a trusted project over the user's, so all calls are made from a neutral directory.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pi_session_mcp import __version__
from pi_session_mcp.setup.clients.answers import (
    compared,
    is_names,
    is_number,
    json_object,
    registration_from,
    same,
)
from pi_session_mcp.setup.clients.base import Conversation, Inspection, Seen, can_be_registered
from pi_session_mcp.setup.clients.program import text_of
from pi_session_mcp.setup.clients.user_scope import UserScopeClient
from pi_session_mcp.setup.registration import PASSED_ON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pi_session_mcp.setup.clients.base import ClientOutput, Runner, Settings
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target
    from pi_session_mcp.terms.strict_json import Tree

_STATE: Final = ("enabled", "disabled_reason")
_SETTINGS: Final[Mapping[str, Callable[[Tree], bool]]] = {
    "enabled_tools": is_names,
    "disabled_tools": is_names,
    "startup_timeout_sec": is_number,
    "tool_timeout_sec": is_number,
}
"""The fields that do not change what is started. Each is null when it is not set."""
_TRANSPORT_DEFAULTS: Final[Mapping[str, Tree]] = {"type": "stdio", "cwd": None}
_PASSED_ON: Final = "env_vars"
_BACKTRACE: Final = re.compile(r"(?<=\n)\nStack backtrace:\n(?: +(?:\d+:|at) [^\n]*\n)*\Z")
"""What follows an error when `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` is set, in a release build."""
_OURS: Final = ("command", "args", "env")
_LAST: Final = 2
"""The id of the last request to the app server."""


class Codex(UserScopeClient):
    """The adapter; see `base.Client`. Codex does not say when it has merged fields of a project over the user's."""

    __slots__ = ()
    name = "codex"
    word = "codex"
    home_variable = "CODEX_HOME"
    home_below = ".codex"
    as_json = (
        "--json",
        "-c",
        "project_root_markers=[]",
    )  # without this, a setting of the operator could make a project of a home

    @staticmethod
    def read(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
        """See `read_inspection`."""
        return read_inspection(output, target, intent)

    def has_home(self) -> bool:
        """See `base.Client`. Codex makes `~/.codex`, but not the directory that `CODEX_HOME` names."""
        moved = self._program.moved_home
        return not moved or os.path.isdir(moved)

    def can_add(self, settings: Settings) -> bool:
        """See `base.Client`."""
        return not settings

    def options(self, settings: Settings) -> tuple[str, ...]:  # noqa: ARG002 - there are none
        """See `UserScopeClient`."""
        return ()

    async def change(self, run: Runner, target: Target, intent: Registration) -> bool:
        """See `base.Client`. Comments in the file are kept, too."""
        if not can_be_registered(intent):
            return False
        command = self._program.from_neutral("app-server", "-c", "analytics.enabled=false", mutates=True)
        await run.run(replace(command, conversation=Conversation(_edits(target, intent), _is_answered)))
        return True


def _edits(target: Target, intent: Registration) -> bytes:
    """The requests that write command and variables into the registration. The last one has the id `_LAST`."""
    values = [("command", intent.command), *((f"env.{name}", value) for name, value in intent.environment.items())]
    edits = [
        {"keyPath": f"mcp_servers.{target.alias}.{key}", "value": value, "mergeStrategy": "replace"}
        for key, value in values
    ]
    about = {"clientInfo": {"name": target.alias, "version": __version__}}
    requests: tuple[dict[str, object], ...] = (
        {"id": _LAST - 1, "method": "initialize", "params": about},
        {"method": "initialized"},
        {"id": _LAST, "method": "config/batchWrite", "params": {"edits": edits}},
    )
    return "".join(json.dumps(request) + "\n" for request in requests).encode("ascii")


def _is_answered(stdout: bytes) -> bool:
    """Whether a whole line answers the last request, or refuses an earlier one."""
    for line in stdout.split(b"\n")[:-1]:
        told = json_object(line)
        if told is not None and (told.get("id") == _LAST or (told.get("id") == _LAST - 1 and "error" in told)):
            return True
    return False


def read_inspection(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
    """What an answer of `codex mcp get --json` says about `target`. Pure.

    After success stderr is not read, since Codex writes warnings about its own installation there.
    """
    if _says_absent(output, target.alias):
        return Inspection(Seen.ABSENT)
    shown = json_object(output.stdout) if output.exit_code == 0 else None
    if shown is None or shown.get("name") != target.alias or shown.keys() != {"name", "transport", *_STATE, *_SETTINGS}:
        return Inspection(Seen.UNSUPPORTED)
    transport = shown["transport"]
    if not isinstance(transport, dict):
        return Inspection(Seen.UNSUPPORTED)
    if isinstance(transport.get("type"), str) and transport["type"] != "stdio":
        return Inspection(Seen.DIVERGENT)
    if transport.keys() != {*_OURS, *_TRANSPORT_DEFAULTS, _PASSED_ON}:
        return Inspection(Seen.UNSUPPORTED)
    settings = {key: shown[key] for key in _SETTINGS if shown[key] is not None}
    if not all(_SETTINGS[key](value) for key, value in settings.items()):
        return Inspection(Seen.UNSUPPORTED)
    if transport[_PASSED_ON] != ():
        settings[_PASSED_ON] = transport[_PASSED_ON]
    if not _starts_only_what_it_says(transport):
        return Inspection(Seen.DIVERGENT)
    is_disabled = shown["enabled"] is False
    if not is_disabled and not (shown["enabled"] is True and shown["disabled_reason"] is None):
        return Inspection(Seen.DIVERGENT)
    return compared(registration_from(transport), intent, settings, is_disabled=is_disabled)


def _starts_only_what_it_says(transport: Mapping[str, Tree]) -> bool:
    """Whether it is started in the usual directory, and without a variable that could change what is started."""
    names = transport[_PASSED_ON]
    passes_little = is_names(names) and isinstance(names, tuple) and PASSED_ON.issuperset(map(str, names))
    return passes_little and all(same(transport[key], value) for key, value in _TRANSPORT_DEFAULTS.items())


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
