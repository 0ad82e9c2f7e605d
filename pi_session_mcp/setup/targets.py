"""What can be named on the command line: a client and one of its scopes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ALIAS: Final = "pi-session-mcp"
"""The name of our registration in every client."""

SCOPES: Final[dict[str, tuple[str, ...]]] = {
    "claude-code": ("user", "project", "local"),
    "codex": ("user",),
    "copilot": ("user",),
}
"""The clients that have an adapter, with the scopes of each."""


class TargetInvalid(ValueError):  # noqa: N818 - an expected answer to what was typed
    """What was typed is no target. `valid` are all targets. The text itself is not kept."""

    def __init__(self) -> None:
        super().__init__("not a target")
        self.valid = tuple(target.short for target in ALL_TARGETS)


@dataclass(frozen=True, slots=True)
class Target:
    """One place where one client keeps a registration."""

    client: str
    scope: str
    alias: str = ALIAS

    @property
    def short(self) -> str:
        """The target as people type it."""
        return f"{self.client}:{self.scope}"

    def __str__(self) -> str:
        return f"{self.client}:{self.scope}:{self.alias}"


ALL_TARGETS: Final = tuple(Target(client, scope) for client, scopes in SCOPES.items() for scope in scopes)

_BY_TEXT: Final = {text: target for target in ALL_TARGETS for text in (target.short, str(target))}


def is_target(text: str) -> bool:
    """Whether `text` names a target."""
    return text in _BY_TEXT


def parse(text: str) -> Target:
    """The target that `text` names: `client:scope`, or the same with `:pi-session-mcp`. Raises `TargetInvalid`."""
    try:
        return _BY_TEXT[text]
    except KeyError:
        raise TargetInvalid from None
