"""What a Pi host is launched with, under the operator's configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pi_session_mcp.host.process import Launch
from pi_session_mcp.host.variables import host_variables
from pi_session_mcp.runtime.locate import locate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pi_session_mcp.config.model import Configuration


@dataclass(frozen=True, slots=True)
class Inherited:
    """What the client gave this process: variables, and where it was started."""

    environ: Mapping[str, str]
    cwd: Path

    @classmethod
    def here(cls) -> Self:
        """As they are now."""
        return cls(dict(os.environ), _working_directory())


def launcher(configuration: Configuration, inherited: Inherited) -> Callable[[], Launch]:
    """Prepares the launch of one host."""
    environ, cwd = inherited.environ, inherited.cwd

    def prepare() -> Launch:
        """Looked up for each host, so that an installation made meanwhile is found. Raises `Refusal`."""
        found = locate(configuration, environ, cwd)
        environment = host_variables(configuration, environ, cwd, tools=found.tools)
        return Launch(found.node, found.sdk_entry, found.sdk_bundle, found.compile_cache, environment)

    return prepare


def _working_directory() -> Path:
    """Where the client started us; a place that nothing is below if that was deleted, or lies behind a closed door."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.devnull)
