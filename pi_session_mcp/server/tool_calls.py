"""The eight tools over the registry of sessions.

One boundary turns what happens inside into what a client may read: a refusal becomes its fixed answer. An unexpected
exception becomes `internal_error`, with one diagnostic that leaves the exception's text out. Cancellation passes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pi_session_mcp import __version__
from pi_session_mcp.diagnostics import Diagnostic, Event, Report
from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.server.arguments import (
    NoArguments,
    PromptArguments,
    SessionArguments,
    StartArguments,
    TurnArguments,
    parse,
)
from pi_session_mcp.server.catalog import SERVER_NAME
from pi_session_mcp.server.replies import failure, success

if TYPE_CHECKING:
    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.server.wire.protocol import Reply
    from pi_session_mcp.sessions.registry import Registry
    from pi_session_mcp.sessions.turn import OnProgress
    from pi_session_mcp.sessions.views import TurnView

_Sent: TypeAlias = Mapping[str, Any] | None
_Tool: TypeAlias = "Callable[[_Sent, OnProgress | None], Awaitable[Reply]]"


def capabilities(configuration: Configuration) -> dict[str, Any]:
    """What `pi_capabilities_get` carries: aliases and intent, as loaded, sorted by code point."""
    return {
        "server": {"name": SERVER_NAME, "version": __version__},
        "configuration": {"fingerprint": configuration.fingerprint, "reloadPolicy": "restart-required"},
        "workspaces": [{"alias": alias} for alias in sorted(configuration.workspaces)],
        "executionProfiles": [
            {
                "alias": alias,
                "default": profile.default,
                "permissionProfile": profile.permission_profile,
                **profile.selection.to_json(),
                "extensions": [pin.written for pin in profile.extensions],
            }
            for alias, profile in sorted(configuration.execution_profiles.items())
        ],
    }


_NO_NEWS: Final = frozenset(
    {
        Code.INVALID_ARGUMENTS,
        Code.UNKNOWN_WORKSPACE,
        Code.UNKNOWN_EXECUTION_PROFILE,
        Code.SESSION_LIMIT_REACHED,
        Code.SERVER_STOPPING,
        Code.INTERNAL_ERROR,
    }
)
"""Refusals of a start that are not reported here: they say nothing about Pi, or were reported where they arose."""


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Makes the calls of the tools. `on_capabilities` is called when the capabilities are read; it returns at once."""

    registry: Registry
    configuration: Configuration
    report: Report
    on_capabilities: Callable[[], None]

    async def call(self, name: str, arguments: _Sent, tell: OnProgress | None) -> Reply:
        """The reply of the tool of that name. `tell` is told of progress by the tools that wait for a turn."""
        try:
            return await self._tool(name)(arguments, tell)
        except Refusal as refusal:
            return failure(refusal.code)
        except Exception:  # noqa: BLE001 - the one boundary: no exception's text may reach a client or a log
            code = Code.INTERNAL_ERROR
            self.report(Diagnostic(level="error", event=Event.INTERNAL_ERROR, code=code, reason=name))
            return failure(code)

    def _tool(self, name: str) -> _Tool:
        tools: dict[str, _Tool] = {
            "pi_capabilities_get": self._capabilities,
            "pi_session_start": self._start,
            "pi_session_list": self._list,
            "pi_session_get": self._get,
            "pi_session_prompt": self._prompt,
            "pi_turn_get": self._turn,
            "pi_session_abort": self._abort,
            "pi_session_close": self._close,
        }
        return tools[name]

    async def _capabilities(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        parse(NoArguments, sent)
        answer = success(**capabilities(self.configuration))
        self.on_capabilities()
        return answer

    async def _start(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        wanted = parse(StartArguments, sent)
        try:
            session = await self.registry.start(wanted.workspace, wanted.profile)
        except Refusal as refusal:
            self._report_failed_start(refusal, wanted.profile)
            raise
        return success(session=session.to_json())

    async def _list(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        parse(NoArguments, sent)
        return success(sessions=[session.to_json() for session in self.registry.list()])

    async def _get(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        asked = parse(SessionArguments, sent)
        return success(session=self.registry.get(asked.session_id).to_json())

    async def _prompt(self, sent: _Sent, tell: OnProgress | None) -> Reply:
        asked = parse(PromptArguments, sent)
        session, turn = await self.registry.prompt(asked.session_id, asked.prompt)
        if asked.wait_ms:
            turn = await self._wait(asked.session_id, turn.turn_id, asked.wait_ms, tell)
            session = self.registry.get_open(asked.session_id)
        return success(session=session.to_json(), turn=turn.to_json())

    async def _turn(self, sent: _Sent, tell: OnProgress | None) -> Reply:
        asked = parse(TurnArguments, sent)
        if not asked.wait_ms:
            return success(turn=self.registry.turn(asked.session_id, asked.turn_id).to_json())
        turn = await self._wait(asked.session_id, asked.turn_id, asked.wait_ms, tell)
        self.registry.get_open(asked.session_id)
        return success(turn=turn.to_json())

    def _wait(self, session_id: str, turn_id: str, wait_ms: int, tell: OnProgress | None) -> Awaitable[TurnView]:
        return self.registry.wait_turn(session_id, turn_id, timeout_s=wait_ms / 1000, on_progress=tell)

    async def _abort(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        asked = parse(SessionArguments, sent)
        return success(session=(await self.registry.abort(asked.session_id)).to_json())

    async def _close(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        asked = parse(SessionArguments, sent)
        return success(session=(await self.registry.close(asked.session_id)).to_json())

    def _report_failed_start(self, refusal: Refusal, alias: str | None) -> None:
        if refusal.code in _NO_NEWS:
            return
        alias = self.configuration.default_profile if alias is None else alias
        profile = self.configuration.execution_profiles[alias]
        self.report(
            Diagnostic(
                level="error",
                event=Event.PI_SESSION_CREATION_FAILED,
                code=refusal.code,
                stage=refusal.stage,
                profile=alias,
                selection=profile.selection,
                extension=refusal.extension,
                server=refusal.server,
                tool=refusal.tool,
                discovered_tools=refusal.discovered_tools,
                reason=refusal.reason,
            )
        )
