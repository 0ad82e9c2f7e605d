"""Creating a verified Pi session on a host: the order of the steps, and which host they run on.

The host only carries out requests. Every comparison and every decision is made on this side.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pi_session_mcp.diagnostics import Diagnostic, Event
from pi_session_mcp.errors import Code, HostGone, Refusal, Stage
from pi_session_mcp.extensions.tools import compose
from pi_session_mcp.sessions.hosted.hosted_session import HostedSession
from pi_session_mcp.sessions.hosted.pinned import PinnedExtensions
from pi_session_mcp.sessions.hosted.reading import read_within, refuse_unusable
from pi_session_mcp.sessions.hosted.steps import bind, check, load, open_session
from pi_session_mcp.sessions.hosted.verifying import refuse_conflict, verified, verified_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pi_session_mcp.bridge.catalog import GrantedTool
    from pi_session_mcp.bridge.servers import ExternalServers
    from pi_session_mcp.config.model import ExecutionProfile
    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.diagnostics import Report
    from pi_session_mcp.extensions.resolve import Place
    from pi_session_mcp.host.pool import HostPool
    from pi_session_mcp.sessions.ports import SessionEvents, SessionSpec
    from pi_session_mcp.terms.selection import Selection


class HostedSessions:
    """`ports.PiSessions` on real Pi hosts.

    `profiles` are the profiles that sessions may have. They decide which hosts are kept warm. `place` returns where
    extensions are installed, or raises `Refusal`. `external` holds the external MCP servers of all sessions. `report`
    is told which kinds of instruction files a session leaves out.
    """

    def __init__(
        self,
        pool: HostPool,
        deadlines: Deadlines,
        profiles: Mapping[str, ExecutionProfile],
        place: Callable[[], Place],
        external: ExternalServers,
        report: Report,
    ) -> None:
        self._pool = pool
        self._deadlines = deadlines
        self._place = place
        self._external = external
        self._report = report
        self._wants_spare = any(profile.extensions for profile in profiles.values())
        self._wants_shared = not all(profile.extensions for profile in profiles.values())

    def warm(self) -> None:
        """See `ports.PiSessions.warm`. Warms the shared host, and a spare host if a profile has extensions."""
        self._pool.warm(shared=self._wants_shared, spare=self._wants_spare)

    async def create(self, spec: SessionSpec, events: SessionEvents) -> HostedSession:
        """See `ports.PiSessions.create`."""
        # First of all, so that a bad workspace is reported as such whatever else is wrong.
        await refuse_unusable(spec.directory, within_s=self._deadlines.check_step_s)
        place = await self._find_place()
        extensions = await PinnedExtensions.resolve(spec.profile, lambda: place, within_s=self._deadlines.check_step_s)
        session = await self._place_session(events, own_host=bool(extensions))
        try:
            session.selection = await self._build(session, spec, extensions)
        except Refusal as refusal:
            if refusal.code is Code.LOCAL_AUTHENTICATION_UNAVAILABLE:
                # Pi remembers a failed key command of auth.json until its process ends.
                session.retire_shared_host()
            await session.discard()
            self.warm()
            raise
        except BaseException:
            await session.abandon()
            raise
        self._tell_what_was_left_out(session, spec)
        self.warm()  # for the next session, and only now, because it would slow this one down
        return session

    def _tell_what_was_left_out(self, session: HostedSession, spec: SessionSpec) -> None:
        if session.left_out:
            counts: dict[str, int] = dict(Counter(session.left_out))
            event = Event.INSTRUCTIONS_LEFT_OUT
            self._report(Diagnostic(level="warning", event=event, workspace=spec.workspace, left_out=counts))

    async def _find_place(self) -> Place:
        """Where Pi's files are. Raises `Refusal` if there is no such place; then no host is started."""
        try:
            return await read_within(self._place, within_s=self._deadlines.check_step_s)
        except TimeoutError:
            raise Refusal(Code.PI_CONFIGURATION_INVALID, stage=Stage.RUNTIME) from None

    async def _place_session(self, events: SessionEvents, *, own_host: bool) -> HostedSession:
        host = await (self._pool.own() if own_host else self._pool.shared())
        try:
            return HostedSession(host, events, self._deadlines, own_host=own_host)
        except HostGone:
            host.vacate()
            raise Refusal(Code.PI_RUNTIME_UNAVAILABLE, stage=Stage.RUNTIME) from None

    async def _build(self, session: HostedSession, spec: SessionSpec, extensions: PinnedExtensions) -> Selection:
        """Take every step from loading to the verified session, in order. Raises `Refusal`."""
        profile, deadlines = spec.profile, self._deadlines
        try:
            registered = await load(session, spec, extensions, deadlines)
            await check(session, profile, deadlines)
            granted = await self._connect(session, spec)
            names = [tool.exposed for tool in granted]
            refuse_conflict(registered, names, extensions)
            tools = compose(profile.permission_profile, names, registered)
            opened = await open_session(session, profile, tools, granted, deadlines)
            selection = verified(profile, tools, opened, may_narrow=bool(extensions), granted=names)
            if extensions:
                bound = await bind(session, extensions, deadlines)
                selection = verified_bound(profile, tools, bound, registered, extensions)
            return selection
        except HostGone:
            raise Refusal(Code.PI_RUNTIME_UNAVAILABLE, stage=Stage.RUNTIME) from None

    async def _connect(self, session: HostedSession, spec: SessionSpec) -> tuple[GrantedTool, ...]:
        """Start the session's external servers, which end with it, and return the granted tools. Raises `Refusal`."""
        servers = self._external.start(spec.profile.mcp_servers, spec.directory)
        session.own_servers(servers)
        await servers.ready()
        return servers.tools
