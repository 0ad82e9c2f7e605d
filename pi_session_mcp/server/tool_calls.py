"""The eight tools over the registry of sessions.

One boundary turns what happens inside into what a client may read: a refusal becomes its fixed answer. An unexpected
exception becomes `internal_error`, with one diagnostic that leaves the exception's text out. Cancellation passes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

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

OnProgress: TypeAlias = Callable[[int], Awaitable[None]]
"""Told how many signs of life a turn has given: only when the number has risen, and at most once a second."""

_Sent: TypeAlias = Mapping[str, Any] | None
_Tool: TypeAlias = "Callable[[_Sent, OnProgress | None], Awaitable[Reply]]"


class View(Protocol):
    """A session or a turn as it was at one moment."""

    def to_json(self) -> dict[str, Any]:
        """The view's fields as clients read them."""


class Sessions(Protocol):
    """What the tools need of the registry. Every method raises `Refusal` and nothing else that is expected."""

    @property
    def stopping(self) -> bool:
        """Whether every session is being closed because the server ends."""

    async def start(self, workspace: str, profile: str | None) -> View:
        """Start a verified session; `None` is the default profile."""

    def list(self) -> tuple[View, ...]:
        """The open sessions."""

    def get(self, session_id: str) -> View:
        """One open session."""

    async def prompt(self, session_id: str, text: str) -> tuple[View, View]:
        """Start a turn; returns the session and the turn once Pi has accepted the prompt."""

    async def wait_turn(
        self, session_id: str, turn_id: str, *, timeout_s: float, on_progress: OnProgress | None
    ) -> View:
        """The turn once it is terminal, or as it is when the time has passed."""

    def turn(self, session_id: str, turn_id: str) -> View:
        """One turn as it is."""

    async def abort(self, session_id: str) -> View:
        """Abort what runs in a session."""

    async def close(self, session_id: str) -> View:
        """Close a session for good."""


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
                "provider": profile.provider,
                "model": profile.model,
                "thinkingLevel": profile.thinking_level,
                "extensions": list(profile.extensions),
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

    registry: Sessions
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
        started, turn = await self.registry.prompt(asked.session_id, asked.prompt)
        session, published = started.to_json(), turn.to_json()
        if asked.wait_ms:
            published = await self._wait(tell, asked.session_id, published["turnId"], asked.wait_ms)
            session = self._open(asked.session_id)
        return success(session=session, turn=published)

    async def _turn(self, sent: _Sent, tell: OnProgress | None) -> Reply:
        asked = parse(TurnArguments, sent)
        if not asked.wait_ms:
            return success(turn=self.registry.turn(asked.session_id, asked.turn_id).to_json())
        turn = await self._wait(tell, asked.session_id, asked.turn_id, asked.wait_ms)
        self._open(asked.session_id)
        return success(turn=turn)

    async def _abort(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        asked = parse(SessionArguments, sent)
        return success(session=(await self.registry.abort(asked.session_id)).to_json())

    async def _close(self, sent: _Sent, _tell: OnProgress | None) -> Reply:
        asked = parse(SessionArguments, sent)
        return success(session=(await self.registry.close(asked.session_id)).to_json())

    async def _wait(self, tell: OnProgress | None, session_id: str, turn_id: str, wait_ms: int) -> dict[str, Any]:
        turn = await self.registry.wait_turn(session_id, turn_id, timeout_s=wait_ms / 1000, on_progress=tell)
        return turn.to_json()

    def _open(self, session_id: str) -> dict[str, Any]:
        """The session as it is after a wait; a session that was closed meanwhile is unknown, and so are its turns."""
        session = self.registry.get(session_id).to_json()
        if session["state"] in {"closing", "closed"}:
            raise Refusal(Code.SERVER_STOPPING if self.registry.stopping else Code.UNKNOWN_SESSION)
        return session

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
                provider=profile.provider,
                model=profile.model,
                thinking_level=profile.thinking_level,
                extension=refusal.extension,
                server=refusal.server,
                tool=refusal.tool,
                discovered_tools=refusal.discovered_tools,
                reason=refusal.reason,
            )
        )
