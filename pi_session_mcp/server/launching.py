"""What a Pi host is launched with, under the operator's configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pi_session_mcp.host.process import Launch
from pi_session_mcp.host.variables import host_variables
from pi_session_mcp.platform.paths import working_directory
from pi_session_mcp.runtime.locate import locate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pi_session_mcp.config.model import Configuration


@dataclass(frozen=True, slots=True)
class Inherited:
    """What the client gave this process: variables, and where it was started."""

    environ: Mapping[str, str]
    cwd: Path

    @classmethod
    def here(cls) -> Self:
        """As they are now."""
        return cls(dict(os.environ), working_directory())


def launcher(configuration: Configuration, inherited: Inherited) -> Callable[[], Launch]:
    """Prepares the launch of one host."""
    environ, cwd = inherited.environ, inherited.cwd

    def prepare() -> Launch:
        """Looked up for each host, so that an installation made meanwhile is found. Raises `Refusal`."""
        found = locate(configuration, environ, cwd)
        environment = host_variables(configuration, environ, cwd, tools=found.tools)
        return Launch(found.node, found.sdk_entry, found.sdk_bundle, found.compile_cache, environment)

    return prepare
