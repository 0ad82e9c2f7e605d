"""One external MCP server of one session: connecting, listing, calling, ending."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread
from mcp import Client
from mcp_types import Implementation

from pi_session_mcp import __version__
from pi_session_mcp.bridge.catalog import Catalog, GrantedTool, RemoteTool
from pi_session_mcp.bridge.results import BAD_ARGUMENTS, TOO_LARGE, Failed, project
from pi_session_mcp.bridge.schema import Arguments
from pi_session_mcp.bridge.transport import connected
from pi_session_mcp.errors import Code, Refusal, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.bridge.results import Outcome
    from pi_session_mcp.bridge.transport import Launch
    from pi_session_mcp.config.model import Grant

_CLIENT: Final = "pi-session-mcp"


class _Call:
    """A call that waits for its result."""

    __slots__ = ("lost", "scope")

    def __init__(self, within_s: float) -> None:
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + within_s)
        self.lost = False
        """Whether the result may have been in a line that was too long to be read."""


class Connection:
    """A connection to one server, which lives as long as `run`.

    `run` belongs to one task: the MCP client must be left in the task that entered it. Everything else may be called
    from any task. `server` is the server's alias.
    """

    def __init__(self, server: str, launch: Launch, grants: Mapping[str, Grant], *, call_s: float) -> None:
        self._server = server
        self._launch = launch
        self._grants = grants
        self._call_s = call_s
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._settled = anyio.Event()
        self._refusal: Refusal | None = None
        self._client: Client | None = None
        self._calls: set[_Call] = set()
        self._arguments: dict[str, Arguments] = {}
        self.tools: tuple[GrantedTool, ...] = ()
        self.gone = anyio.Event()
        """Set when no process of the server is alive."""

    # --- for its users -----------------------------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether it is decided if the granted tools can be called."""
        return self._settled.is_set()

    async def ready(self) -> None:
        """Wait until the granted tools can be called. Raises `Refusal`."""
        await self._settled.wait()
        if self._refusal is not None:
            raise self._refusal

    async def call(self, tool: GrantedTool, arguments: object, given: object) -> Outcome:
        """Call a granted tool. `given` are the arguments as the model wrote them, before Pi has changed any.

        Both must keep to the tool's schema, or the server hears nothing. Bounded; a caller that is cancelled, like one
        whose time has passed, tells the server that it waits no more, which need not undo what the call has done.
        """
        judge = self._arguments[tool.remote]
        if not judge.accept(arguments) or not judge.accept(given):
            return Failed(BAD_ARGUMENTS)
        assert isinstance(arguments, dict)
        outcome: Outcome = Failed()
        call = _Call(self._call_s)
        self._calls.add(call)
        try:
            with call.scope:
                outcome = await self._outcome(tool, arguments)
        finally:
            self._calls.discard(call)
        return Failed(TOO_LARGE) if call.lost else outcome

    async def _outcome(self, tool: GrantedTool, arguments: dict[str, Any]) -> Outcome:
        if self._client is None:
            return Failed()
        try:
            result = await self._client.call_tool(tool.remote, arguments)
        except Exception:  # noqa: BLE001 - whatever a foreign server made the SDK raise, its text stays here
            return Failed()
        return project(result.model_dump(by_alias=True, exclude_unset=True))

    def close(self) -> None:
        """Begin the end, whatever the connection has come to. Returns at once; see `gone`."""
        self._scope.cancel()

    # --- its life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, list, serve, end. Returns when nothing of the server is left; never raises but when cancelled."""
        try:
            with self._scope:
                await self._live()
        except Exception:  # noqa: BLE001 - a server that cannot be started or that breaks the protocol
            pass
        finally:
            self._client = None
            self._settle(Refusal(Code.EXTERNAL_MCP_UNAVAILABLE, stage=Stage.MCP_TOOLS, server=self._server))
            self.gone.set()

    async def _live(self) -> None:
        transport = connected(self._launch, on_end=self._ended.set, on_too_long=self._lose_results)
        name = Implementation(name=_CLIENT, version=__version__)
        async with Client(transport, mode="legacy", cache=None, client_info=name) as client:
            try:
                self.tools = await self._discover(client)
            except Refusal as refusal:  # here, since leaving the client would wrap it
                self._settle(refusal)
                return
            self._client = client
            self._settle(None)
            await self._ended.wait()
            self._client = None

    async def _discover(self, client: Client) -> tuple[GrantedTool, ...]:
        catalog = Catalog(self._server)
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools = [RemoteTool(tool.name, tool.description or "", tool.input_schema) for tool in page.tools]
            # Judging hundreds of schemas takes a second, during which the server must go on serving others.
            await to_thread.run_sync(partial(catalog.add, tools, page.next_cursor), abandon_on_cancel=True)
            cursor = page.next_cursor
            if cursor is None:
                break
        granted = catalog.granted(self._grants)
        self._arguments = {tool.remote: Arguments(tool.schema) for tool in granted}
        return granted

    def _settle(self, refusal: Refusal | None) -> None:
        if not self._settled.is_set():
            self._refusal = refusal
            self._settled.set()

    def _lose_results(self) -> None:
        """A line was too long to be read: it may have been any result that is waited for, and certainly too large."""
        if not self._settled.is_set():
            self.close()
        for call in self._calls:
            call.lost = True
            call.scope.cancel()
