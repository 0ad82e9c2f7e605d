"""The environment of an external MCP server: a few fixed variables, and those that the operator named. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""The variables that the MCP SDK gives to a server that it starts. A test compares the two lists."""
_SHELL_FUNCTION: Final = "()"


class VariableMissing(Exception):  # noqa: N818 - an expected answer
    """A variable that the operator named is not set on this machine."""


def child_environment(environ: Mapping[str, str], env_from: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of one server. `env_from` maps its variables to ours. Raises `VariableMissing`."""
    inherited = {name: environ[name] for name in INHERITED if name in environ}
    kept = {name: value for name, value in inherited.items() if not value.startswith(_SHELL_FUNCTION)}
    if any(ours not in environ for ours in env_from.values()):
        raise VariableMissing
    return kept | {theirs: environ[ours] for theirs, ours in env_from.items()}
