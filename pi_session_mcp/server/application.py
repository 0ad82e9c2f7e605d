"""What `serve` serves: the eight tools over a registry of sessions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pi_session_mcp.diagnostics import Event
from pi_session_mcp.runtime.agent_directory import ignored_variable
from pi_session_mcp.server.app import build_server
from pi_session_mcp.server.compose import compose
from pi_session_mcp.server.launching import Surroundings
from pi_session_mcp.sessions.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp.server.lowlevel import Server

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.diagnostics import Diagnostic, Report
    from pi_session_mcp.host.pool import EarlyHost
    from pi_session_mcp.server.compose import Composition
    from pi_session_mcp.server.serving import Open


@dataclass(frozen=True, slots=True)
class _Tools:
    server: Server[Any]
    parts: Composition

    async def shutdown(self) -> None:
        await self.parts.shutdown()


def application(
    configuration: Configuration, report: Report, count: Callable[[int, int], None], early: EarlyHost | None = None
) -> Open:
    """The application, not yet begun. It takes over an `early` host.

    `count` takes what hosts print, as (bytes, writes).
    """

    @asynccontextmanager
    async def begin() -> AsyncIterator[_Tools]:
        bounds = Deadlines()
        async with compose(configuration, report, count, bounds, early) as parts:
            told = _naming_an_ignored_variable(report, configuration)
            server = build_server(parts.registry, configuration, told, on_capabilities=parts.warm_soon)
            yield _Tools(server, parts)

    return begin


def _naming_an_ignored_variable(report: Report, configuration: Configuration) -> Report:
    """`report`, which says of a failed start also that Pi's files were looked for elsewhere than the client meant."""
    around = Surroundings.here()

    def tell(diagnostic: Diagnostic) -> None:
        if diagnostic.event is Event.PI_SESSION_CREATION_FAILED:
            ignored = ignored_variable(configuration, around.environ, around.cwd)
            diagnostic = replace(diagnostic, agent_directory_variable=ignored)
        report(diagnostic)

    return tell
