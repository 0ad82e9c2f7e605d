"""How each client is run without a person, a login or a network: the very words and variables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from acceptance.live.dialects import Messages, Responses
from pi_session_mcp.setup.targets import ALIAS, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from acceptance.homes import Home
    from acceptance.live.dialects import Dialect

TOOLS: Final = (
    "pi_capabilities_get",
    "pi_session_start",
    "pi_session_list",
    "pi_session_get",
    "pi_session_prompt",
    "pi_turn_get",
    "pi_session_abort",
    "pi_session_close",
)
_ASKS_FIRST: Final = ("pi_session_prompt", "pi_session_abort", "pi_session_close")
"""The tools with a destructive hint: Codex runs them without a person only where each is approved."""


@dataclass(frozen=True, slots=True)
class LiveClient:
    """One client that can delegate. `prepare` makes its model ours, before anything is registered."""

    target: Target
    dialect: Callable[[], Dialect]
    options: Callable[[str], tuple[str, ...]]
    """The words after the program's name, for a prompt."""
    approvals: tuple[str, ...]
    """More words, without which the tools are refused. Codex takes its own only once the server is registered."""
    environ: Callable[[str], Mapping[str, str]]
    """The variables that it needs, for the model's origin."""
    prepare: Callable[[Home, str], None]
    unapproved: Sequence[bool]
    """Whether discovery, a start and a prompt are done without those words."""
    exits: Mapping[str, int]
    """How it exits when it ends by itself, at SIGINT and at SIGKILL."""


def _claude_options(prompt: str) -> tuple[str, ...]:
    return ("-p", prompt, "--output-format", "stream-json", "--verbose")


def _claude_environ(origin: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": origin,
        "ANTHROPIC_API_KEY": "no-key",
        "ANTHROPIC_MODEL": "scripted",
        # Without this the model is given the names alone, and has to ask for a tool's schema before it calls it.
        "ENABLE_TOOL_SEARCH": "false",
    }


def _codex_options(prompt: str) -> tuple[str, ...]:
    return ("exec", prompt, "--json", "--skip-git-repo-check", "--disable", "plugins", "--disable", "apps")


def _approval(tool: str) -> str:
    return f'mcp_servers.{ALIAS}.tools.{tool}.approval_mode="approve"'


def _codex_configuration(home: Home, origin: str) -> None:
    provider = {"name": "scripted", "base_url": f"{origin}/v1", "wire_api": "responses"}
    lines = [
        'model = "scripted"',
        'model_provider = "scripted"',
        "[analytics]",
        "enabled = false",
        "[model_providers.scripted]",
        *(f"{name} = {json.dumps(value)}" for name, value in provider.items()),
    ]
    (home.directory / ".codex" / "config.toml").write_text("\n".join(lines) + "\n", "utf-8")


LIVE: Final = (
    LiveClient(
        Target("claude-code", "user"),
        Messages,
        _claude_options,
        ("--allowedTools", ",".join(f"mcp__{ALIAS}__{tool}" for tool in TOOLS)),
        _claude_environ,
        lambda _home, _origin: None,
        (False, False, False),
        {"end": 0, "SIGINT": 0, "SIGKILL": -9},
    ),
    LiveClient(
        Target("codex", "user"),
        Responses,
        _codex_options,
        tuple(word for tool in _ASKS_FIRST for word in ("-c", _approval(tool))),
        lambda _origin: {},
        _codex_configuration,
        (True, True, False),
        {"end": 0, "SIGINT": 1, "SIGKILL": -9},
    ),
)
"""Every client that can be made to delegate with a scripted model."""
