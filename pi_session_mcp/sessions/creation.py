"""Creating a verified Pi session on a host: the steps, their bounds, and what each failure is called.

The host only does what it is told; every comparison and every decision is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import anyio

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.host.client import HostFailed
from pi_session_mcp.host.protocol import (
    Abort,
    Activity,
    Check,
    CheckResult,
    Dispose,
    Empty,
    HostGone,
    Load,
    LoadResult,
    Open,
    OpenResult,
    Prompt,
    PromptResult,
    Run,
    Settled,
)
from pi_session_mcp.sessions.ports import Outcome, Preflight, Selection

if TYPE_CHECKING:
    from pi_session_mcp.config.model import ExecutionProfile
    from pi_session_mcp.host.client import ResultT
    from pi_session_mcp.host.host import Host
    from pi_session_mcp.host.pool import HostPool
    from pi_session_mcp.host.protocol import Request
    from pi_session_mcp.sessions.deadlines import Deadlines
    from pi_session_mcp.sessions.ports import SessionEvents, SessionSpec

BUILT_IN_TOOLS: Final = {
    "read-only": ("read", "grep", "find", "ls"),
    "coding": ("read", "bash", "edit", "write", "grep", "find", "ls"),
}
"""The model's tools in each permission profile, in the order in which Pi gets them."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One question before creation: its name for the host, and the code of a no, of a failure, and of a late answer."""

    step: Literal["provider", "model", "check_auth", "get_auth", "availability"]
    stage: Stage
    no: Code
    failed: Code


_STEPS: Final = (
    _Step("provider", Stage.PROVIDER, Code.UNKNOWN_PROVIDER, Code.PI_SESSION_CREATION_FAILED),
    _Step("model", Stage.MODEL, Code.UNKNOWN_MODEL, Code.PI_SESSION_CREATION_FAILED),
    _Step("check_auth", Stage.CHECK_AUTH, Code.LOCAL_AUTHENTICATION_MISSING, Code.LOCAL_AUTHENTICATION_UNAVAILABLE),
    _Step("get_auth", Stage.GET_AUTH, Code.LOCAL_AUTHENTICATION_MISSING, Code.LOCAL_AUTHENTICATION_UNAVAILABLE),
    _Step("availability", Stage.AVAILABILITY, Code.MODEL_UNAVAILABLE, Code.PI_SESSION_CREATION_FAILED),
)


class HostedSessions:
    """`ports.PiSessions` on real Pi hosts."""

    def __init__(self, pool: HostPool, deadlines: Deadlines) -> None:
        self._pool = pool
        self._deadlines = deadlines

    def warm(self) -> None:
        """Have the shared host ready for the next session."""
        self._pool.warm()

    async def create(self, spec: SessionSpec, events: SessionEvents) -> HostedSession:
        """See `ports.PiSessions.create`."""
        refuse_unsupported(spec.profile)
        if not await anyio.Path(spec.directory).is_dir():
            raise Refusal(Code.PI_SESSION_CREATION_FAILED, stage=Stage.RESOURCE_LOADER)
        host = await self._pool.shared()
        try:
            session = HostedSession(host, events, self._deadlines)
        except HostGone:
            host.vacate()
            raise Refusal(Code.PI_RUNTIME_UNAVAILABLE, stage=Stage.RUNTIME) from None
        try:
            session.selection = await _build(session, spec, self._deadlines)
        except BaseException:
            await session.discard()
            raise
        return session


def refuse_unsupported(profile: ExecutionProfile) -> None:
    """Refuse what this version does not build yet. Raises `Refusal`."""
    if profile.extensions:
        raise Refusal(Code.EXTENSION_LOAD_FAILED, stage=Stage.EXTENSION_RESOLVE)
    if profile.mcp_servers:
        raise Refusal(Code.EXTERNAL_MCP_UNAVAILABLE, stage=Stage.MCP_TOOLS)


class HostedSession:
    """`ports.PiSession` on a real Pi host; also the place where its events arrive."""

    def __init__(self, host: Host, events: SessionEvents, deadlines: Deadlines) -> None:
        self.selection = Selection("", "", "")
        self._host = host
        self._client = host.client
        self._events = events
        self._deadlines = deadlines
        self._placed = True
        self.key = self._client.place(self)

    @property
    def own_host(self) -> bool:
        """See `ports.PiSession.own_host`."""
        return False

    async def ask(self, request: Request, result: type[ResultT], within_s: float | None = None) -> ResultT:
        """One request of this session; the host is pinged when it is half late."""
        watch_after_s = None if within_s is None else within_s / 2
        return await self._client.request(request, result, within_s=within_s, watch_after_s=watch_after_s)

    async def prompt(self, turn: int, text: str) -> Preflight:
        """See `ports.PiSession.prompt`."""
        request = Prompt(session=self.key, turn=turn, text=text)
        try:
            result = await self._client.request(request, PromptResult, watch_after_s=self._deadlines.preflight_s / 2)
        except HostFailed:
            return Preflight.REJECTED
        return Preflight(result.preflight)

    async def abort(self) -> None:
        """See `ports.PiSession.abort`."""
        try:
            await self._client.request(Abort(session=self.key), Empty, watch_after_s=self._deadlines.abort_s / 2)
        except HostFailed as error:
            raise Refusal(Code.ABORT_FAILED) from error

    async def dispose(self) -> None:
        """See `ports.PiSession.dispose`."""
        if not self._placed:
            return
        try:
            await self._client.request(Dispose(session=self.key), Empty, watch_after_s=self._deadlines.close_s / 2)
        except (HostGone, HostFailed):
            pass  # gone is disposed of; a host that cannot dispose is ended by who bounds this
        finally:
            self._leave()

    async def discard(self) -> None:
        """Dispose of a session that is not admitted, also when the caller is cancelled; bounded."""
        with anyio.move_on_after(self._deadlines.close_s, shield=True):
            await self.dispose()

    def end_host(self) -> None:
        """See `ports.PiSession.end_host`."""
        self._host.retire()

    def _leave(self) -> None:
        if self._placed:
            self._placed = False
            self._client.remove(self.key)
            self._host.vacate()

    # --- events of the host ------------------------------------------------------------------------------------------

    def host_event(self, event: Activity | Settled | Run) -> None:
        """Pass an event on in the registry's words."""
        match event:
            case Activity(turn=turn):
                self._events.activity(turn)
            case Settled(turn=turn, stopReason=reason, aborted=aborted, text=text):
                self._events.settled(turn, Outcome(reason, aborted, text))
            case Run(active=active):
                self._events.foreign_run(active=active)

    def host_ended(self) -> None:
        """The host is gone, and this session with it."""
        self._leave()
        self._events.host_ended()


async def _build(session: HostedSession, spec: SessionSpec, deadlines: Deadlines) -> Selection:
    """Load, check, open, verify. Raises `Refusal`."""
    try:
        await _load(session, spec, deadlines)
        for step in _STEPS:
            await _check(session, spec.profile, step, deadlines)
        return verified(spec.profile, await _open(session, spec.profile, deadlines))
    except HostGone:
        raise Refusal(Code.PI_RUNTIME_UNAVAILABLE, stage=Stage.RUNTIME) from None


async def _load(session: HostedSession, spec: SessionSpec, deadlines: Deadlines) -> None:
    request = Load(session=session.key, cwd=str(spec.directory), fileAccess=spec.profile.file_access)
    try:
        await session.ask(request, LoadResult, deadlines.creation_step_s)
    except TimeoutError:
        raise Refusal(Code.PI_SESSION_CREATION_FAILED, stage=Stage.RESOURCE_LOADER) from None
    except HostFailed as failure:
        if failure.code == "pi_configuration":
            raise Refusal(Code.PI_CONFIGURATION_INVALID, stage=Stage.RUNTIME) from None
        raise Refusal(Code.PI_SESSION_CREATION_FAILED, stage=Stage.RESOURCE_LOADER) from None


async def _check(session: HostedSession, profile: ExecutionProfile, step: _Step, deadlines: Deadlines) -> None:
    request = Check(session=session.key, step=step.step, provider=profile.provider, model=profile.model)
    try:
        answer = await session.ask(request, CheckResult, deadlines.check_step_s)
    except (TimeoutError, HostFailed):
        raise Refusal(step.failed, stage=step.stage) from None
    if not answer.found:
        raise Refusal(step.no, stage=step.stage)


async def _open(session: HostedSession, profile: ExecutionProfile, deadlines: Deadlines) -> OpenResult:
    request = Open(
        session=session.key,
        provider=profile.provider,
        model=profile.model,
        thinkingLevel=profile.thinking_level,
        tools=list(BUILT_IN_TOOLS[profile.permission_profile]),
    )
    try:
        return await session.ask(request, OpenResult, deadlines.creation_step_s)
    except (TimeoutError, HostFailed):
        raise Refusal(Code.PI_SESSION_CREATION_FAILED, stage=Stage.CREATE_SESSION) from None


def verified(profile: ExecutionProfile, opened: OpenResult) -> Selection:
    """What was created, if it is what was configured. Raises `Refusal`."""
    if opened.thinkingLevel != profile.thinking_level:
        raise Refusal(Code.THINKING_LEVEL_UNAVAILABLE, stage=Stage.POSTCHECK)
    asked = (profile.provider, profile.model, BUILT_IN_TOOLS[profile.permission_profile])
    if (opened.provider, opened.model, tuple(opened.activeTools)) != asked:
        raise Refusal(Code.EXECUTION_SELECTION_MISMATCH, stage=Stage.POSTCHECK)
    return Selection(opened.provider, opened.model, opened.thinkingLevel)
