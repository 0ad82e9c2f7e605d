"""One external MCP server of one session: connecting, listing, calling, ending.

The MCP SDK, whose client speaks to the server, is imported for the first connection of the process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread

from pi_session_mcp.bridge.catalog import Catalog, GrantedTool
from pi_session_mcp.bridge.results import BAD_ARGUMENTS, TOO_LARGE, UNJUDGED_ARGUMENTS, Failed, project
from pi_session_mcp.errors import Code, Refusal, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from pi_session_mcp.bridge.client import McpClient
    from pi_session_mcp.bridge.judge import Judge
    from pi_session_mcp.bridge.process import Launch
    from pi_session_mcp.bridge.results import Outcome
    from pi_session_mcp.bridge.transport import Watcher
    from pi_session_mcp.config.model import Grant

    Speaking: TypeAlias = Callable[[Launch, Watcher], AbstractAsyncContextManager[McpClient]]

_LATE: Final = Failed()


@dataclass(frozen=True, slots=True)
class Said:
    """The arguments of a call as JSON texts: as Pi passes them on, and `given` as the model wrote them."""

    arguments: str
    given: str


class _Call:
    """A call that waits for its result."""

    __slots__ = ("outcome", "scope")

    def __init__(self, within_s: float) -> None:
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + within_s)
        self.outcome: Outcome = _LATE

    def end(self, outcome: Outcome) -> None:
        """Stop waiting, with this outcome."""
        self.outcome = outcome
        self.scope.cancel()


class Connection:
    """A connection to one server, which lives as long as `run`.

    `run` belongs to one task: the MCP client must be left in the task that entered it. Everything else may be called
    from any task. `server` is the server's alias, and `judge` is the session's. The connection is also the
    `transport.Watcher` of its server.
    """

    def __init__(
        self, server: str, launch: Launch, grants: Mapping[str, Grant], judge: Judge, *, call_s: float
    ) -> None:
        self._server = server
        self._launch = launch
        self._grants = grants
        self._judge = judge
        self._call_s = call_s
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._settled = anyio.Event()
        self._refusal: Refusal | None = None
        self._client: McpClient | None = None
        self._calls: set[_Call] = set()
        self.tools: tuple[GrantedTool, ...] = ()
        self.gone = anyio.Event()
        """Set when no process of the server is alive."""

    # --- for its users -----------------------------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether it is known if the granted tools can be called."""
        return self._settled.is_set()

    async def ready(self) -> None:
        """Wait until the granted tools can be called. Raises `Refusal`."""
        await self._settled.wait()
        if self._refusal is not None:
            raise self._refusal

    async def call(self, tool: GrantedTool, arguments: dict[str, Any], said: Said) -> Outcome:
        """Call a granted tool with these arguments; `said` is what the judge reads.

        The server is asked only if both forms of the arguments keep to the tool's schema. When the time has passed, or
        the caller is cancelled, the server is told that its answer is not wanted any more. What the call has done by
        then may stay done.
        """
        call = _Call(self._call_s)
        self._calls.add(call)
        try:
            with call.scope:
                call.outcome = await self._outcome(tool, arguments, said)
        finally:
            self._calls.discard(call)
        return call.outcome

    async def _outcome(self, tool: GrantedTool, arguments: dict[str, Any], said: Said) -> Outcome:
        keeps = await self._judge.keeps(_text(tool.schema), *dict.fromkeys((said.arguments, said.given)))
        if not keeps:
            return Failed(UNJUDGED_ARGUMENTS if keeps is None else BAD_ARGUMENTS)
        if self._client is None:
            return Failed()
        try:
            result = await self._client.call_tool(tool.remote, arguments)
            return project(result, other_shape=await self._breaks_its_schema(tool, result))
        except Exception:  # noqa: BLE001 - a foreign server can make the SDK raise anything, and its text must stay here
            return Failed()

    async def _breaks_its_schema(self, tool: GrantedTool, result: Mapping[str, Any]) -> bool:
        """Whether a result certainly breaks the schema that its tool has promised."""
        if tool.output is None or result.get("isError"):
            return False
        structured = result.get("structuredContent")
        return structured is None or await self._judge.keeps(_text(tool.output), _text(structured)) is False

    def close(self) -> None:
        """Begin the end, at whatever stage the connection is. Returns at once; see `gone`."""
        self._scope.cancel()

    # --- its life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, list, serve and end. Returns when nothing of the server is left. Raises only when cancelled."""
        try:
            with self._scope:
                await self._live()
        except Exception:  # noqa: BLE001 - the server cannot be started, or breaks the protocol
            pass
        finally:
            self._client = None
            self._settle(Refusal(Code.EXTERNAL_MCP_UNAVAILABLE, stage=Stage.MCP_TOOLS, server=self._server))
            self.gone.set()

    async def _live(self) -> None:
        # In a thread: it takes half a second, and other sessions must not wait for it.
        speaking = await to_thread.run_sync(_import_speaking)
        async with speaking(self._launch, self) as client:
            try:
                self.tools = await self._discover(client)
            except Refusal as refusal:  # caught here, because leaving the client would wrap it in a group
                self._settle(refusal)
                return
            self._client = client
            self._settle(None)
            await self._ended.wait()
            self._client = None

    async def _discover(self, client: McpClient) -> tuple[GrantedTool, ...]:
        catalog = Catalog(self._server, frozenset(grant.name for grant in self._grants.values()))
        cursor: str | None = None
        while (cursor := catalog.take(await client.list_tools(cursor))) is not None:
            pass
        granted = catalog.granted(self._grants)
        for alias, tool in zip(self._grants, granted, strict=True):
            if not await self._judge.is_usable(_text(tool.schema)):
                raise catalog.unusable(alias)
        return granted

    def _settle(self, refusal: Refusal | None) -> None:
        if not self._settled.is_set():
            self._refusal = refusal
            self._settled.set()

    # --- as the watcher of its transport -----------------------------------------------------------------------------

    def server_ended(self) -> None:
        """See `transport.Watcher`. The client tells the calls under way, since their answers may still be unread."""
        self._ended.set()

    def line_too_long(self) -> None:
        """See `transport.Watcher`. The line may be any result that is waited for, and that result is too large."""
        self._lose(Failed(TOO_LARGE))

    def answer_unknown(self) -> None:
        """See `transport.Watcher`. The answer may be meant for any call that waits."""
        self._lose(Failed())

    def overran(self) -> None:
        """See `transport.Watcher`. The server is given up, and its tools fail from now on."""
        self._lose(Failed())
        self.close()

    def _lose(self, outcome: Outcome) -> None:
        if not self._settled.is_set():
            self.close()
        for call in self._calls:
            call.end(outcome)


def _text(value: object) -> str:
    """A value as JSON for the judge. Raises `ValueError` if it cannot be written as JSON."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _import_speaking() -> Speaking:
    from pi_session_mcp.bridge.client import speaking

    return speaking
