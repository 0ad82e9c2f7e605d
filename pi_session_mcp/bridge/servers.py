"""The external MCP servers of all sessions. Each session has its own, and each server an owner until it is gone."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import anyio
from pydantic_core import from_json

from pi_session_mcp.bridge.child_environment import VariableMissing, child_environment
from pi_session_mcp.bridge.connection import Connection, Said
from pi_session_mcp.bridge.judge import Judge
from pi_session_mcp.bridge.process import Launch
from pi_session_mcp.bridge.results import BAD_ARGUMENTS, Failed
from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.platform.text import path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from anyio.abc import TaskGroup

    from pi_session_mcp.bridge.catalog import GrantedTool
    from pi_session_mcp.bridge.results import Outcome
    from pi_session_mcp.config.model import McpServer
    from pi_session_mcp.deadlines import Deadlines

MAX_CALLS: Final = 64
"""The most calls of one session at a time. A model's tools run one after the other, so it never needs more."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call from a host. Both are JSON texts; `given` is from before Pi has changed any argument."""

    number: int
    tool: str
    arguments: str
    given: str


class ExternalServers:
    """All external servers of this process. An async context manager: leaving it ends them."""

    def __init__(self, environ: Mapping[str, str], deadlines: Deadlines) -> None:
        self._environ = environ
        self._deadlines = deadlines
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup
        self._sessions: set[SessionServers] = set()
        self._stopping = False

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.stop()
        for session in tuple(self._sessions):
            session.close()
        return await self._stack.__aexit__(kind, error, trace)

    def stop(self) -> None:
        """Start no more connections, and end those that are being made. What sessions have stays. Returns at once."""
        self._stopping = True
        for session in tuple(self._sessions):
            if not session.is_ready:
                session.close()

    def start(self, servers: Mapping[str, McpServer], directory: Path) -> SessionServers:
        """Start the servers of one session, if it has any, in `directory`. Returns at once.

        Raises `Refusal`. The caller awaits `ready`, and in every case `end`.
        """
        if self._stopping and servers:
            raise Refusal(Code.SERVER_STOPPING, stage=Stage.MCP_TOOLS)
        judge = Judge(self._deadlines.mcp_judge_s, self._deadlines.mcp_judge_idle_s)
        connections = {alias: self._connection(alias, one, judge, directory) for alias, one in servers.items()}
        session = SessionServers(self._tasks, connections, judge, self._deadlines.mcp_startup_s, self._sessions.discard)
        self._sessions.add(session)
        if connections:
            self._tasks.start_soon(judge.run)
        for connection in connections.values():
            self._tasks.start_soon(connection.run)
        return session

    def _connection(self, alias: str, server: McpServer, judge: Judge, directory: Path) -> Connection:
        try:
            environment = child_environment(self._environ, server.env_from)
        except VariableMissing:
            raise Refusal(Code.EXTERNAL_MCP_UNAVAILABLE, stage=Stage.MCP_TOOLS, server=alias) from None
        command = tuple(path_text(text) for text in (server.command, *server.args))
        launch = Launch(command, environment, str(directory))
        return Connection(alias, launch, server.tools, judge, call_s=self._deadlines.mcp_call_s)


class SessionServers:
    """The external servers of one session. A method raises only what its text says."""

    def __init__(
        self,
        tasks: TaskGroup,
        connections: Mapping[str, Connection],
        judge: Judge,
        startup_s: float,
        forget: Callable[[SessionServers], None],
    ) -> None:
        self._tasks = tasks
        self._connections = connections
        self._judge = judge
        self._startup_s = startup_s
        self._forget = forget
        self._tools: dict[str, tuple[Connection, GrantedTool]] = {}
        self._calls: dict[int, anyio.CancelScope] = {}
        self._closing = False
        self.is_ready = False

    @property
    def tools(self) -> tuple[GrantedTool, ...]:
        """The granted tools, in the order of the configuration, once all servers are ready."""
        return tuple(tool for _, tool in self._tools.values())

    # --- its life ----------------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until all servers are ready. Raises `Refusal` when the first one fails, or after the bound."""
        failed: list[Refusal] = []
        with anyio.move_on_after(self._startup_s) as bound:
            async with anyio.create_task_group() as waiting:
                for connection in self._connections.values():
                    waiting.start_soon(_note_refusal, connection, failed, waiting.cancel_scope)
        if bound.cancelled_caught:
            late = next((alias for alias, one in self._connections.items() if not one.is_settled), None)
            failed.append(Refusal(Code.EXTERNAL_MCP_UNAVAILABLE, stage=Stage.MCP_TOOLS, server=late))
        if failed:
            raise failed[0]
        self._tools = {tool.exposed: (one, tool) for one in self._connections.values() for tool in one.tools}
        self.is_ready = True

    def close(self) -> None:
        """Refuse new calls, end those under way and begin to end all servers. Returns at once; may be called again."""
        self._closing = True
        for scope in self._calls.values():
            scope.cancel()
        for connection in self._connections.values():
            connection.close()
        self._judge.close()

    async def end(self) -> None:
        """Close, and wait until no process of a server is left. Each ends within a bound of its own."""
        self.close()
        try:
            for connection in self._connections.values():
                await connection.gone.wait()
            if self._connections:  # else it was asked nothing, and has not been started
                await self._judge.gone.wait()
        finally:
            self._forget(self)

    # --- calls -------------------------------------------------------------------------------------------------------

    def begin(self, call: ToolCall, answer: Callable[[Outcome], None]) -> None:
        """Run a call and hand its outcome to `answer`, exactly once. Returns at once."""
        if self._closing or len(self._calls) >= MAX_CALLS:
            answer(Failed())
            return
        scope = self._calls[call.number] = anyio.CancelScope()
        self._tasks.start_soon(self._run, call, scope, answer)

    def cancel(self, number: int) -> None:
        """End a call. A call that is over, or never began, is no error."""
        if (scope := self._calls.get(number)) is not None:
            scope.cancel()

    async def _run(self, call: ToolCall, scope: anyio.CancelScope, answer: Callable[[Outcome], None]) -> None:
        outcome: Outcome = Failed()
        try:
            with scope:
                outcome = await self._outcome(call)
        finally:
            del self._calls[call.number]
            answer(outcome)

    async def _outcome(self, call: ToolCall) -> Outcome:
        if call.tool not in self._tools:
            return Failed()
        connection, tool = self._tools[call.tool]
        try:
            arguments, _ = (from_json(text, allow_inf_nan=False) for text in (call.arguments, call.given))
        except ValueError:
            return Failed(BAD_ARGUMENTS)
        if not isinstance(arguments, dict):
            return Failed(BAD_ARGUMENTS)
        try:
            return await connection.call(tool, arguments, Said(call.arguments, call.given))
        except Exception:  # noqa: BLE001 - a foreign server can make it fail in any way, and only this call fails
            return Failed()


async def _note_refusal(connection: Connection, failed: list[Refusal], others: anyio.CancelScope) -> None:
    try:
        await connection.ready()
    except Refusal as refusal:
        failed.append(refusal)
        others.cancel()
