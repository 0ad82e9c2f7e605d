"""The client of one MCP connection: the opening, and requests whose results come as the server wrote them.

The SDK finds the request for each answer, cancels and closes. Its own `Client` would judge lists of tools and results
by its models, and refuse all of it for one odd part. Here `catalog` and `results` take what they can use.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import METHOD_NOT_FOUND, ClientCapabilities, Implementation, InitializeRequestParams
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from pi_session_mcp import __version__
from pi_session_mcp.bridge.transport import connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pi_session_mcp.bridge.process import Launch
    from pi_session_mcp.bridge.transport import Watcher

_NAME: Final = "pi-session-mcp"


class VersionUnknown(Exception):  # noqa: N818 - an answer of a server
    """The server has no version of the protocol in common with us."""


class McpClient:
    """An open connection. Its methods may be called from any task, and raise what the SDK raises."""

    def __init__(self, dispatcher: JSONRPCDispatcher[Any]) -> None:
        self._dispatcher = dispatcher

    async def list_tools(self, cursor: str | None) -> dict[str, Any]:
        """One page of the list, as the server wrote it."""
        return await self._dispatcher.send_raw_request("tools/list", None if cursor is None else {"cursor": cursor})

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """A result, as the server wrote it. If the caller is cancelled, the server is told."""
        return await self._dispatcher.send_raw_request("tools/call", {"name": name, "arguments": arguments})

    async def open(self) -> None:
        """Shake hands. Raises `VersionUnknown`, and what the SDK raises."""
        params = InitializeRequestParams(
            protocol_version=LATEST_HANDSHAKE_VERSION,
            capabilities=ClientCapabilities(),
            client_info=Implementation(name=_NAME, version=__version__),
        )
        asked = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        result = await self._dispatcher.send_raw_request("initialize", asked)
        if result.get("protocolVersion") not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise VersionUnknown
        await self._dispatcher.notify("notifications/initialized", None)


@asynccontextmanager
async def speaking(launch: Launch, watcher: Watcher) -> AsyncIterator[McpClient]:
    """A started server that has shaken hands. Leaving the block ends it. Enter and leave it in one task.

    Raises `OSError`, `VersionUnknown`, and what the SDK raises.
    """
    async with connected(launch, watcher) as (received, outbox), anyio.create_task_group() as tasks:
        dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(received, outbox)
        await tasks.start(dispatcher.run, _never_asked, _never_told)
        client = McpClient(dispatcher)
        await client.open()
        yield client
        tasks.cancel_scope.cancel()


async def _never_asked(_context: object, method: str, _params: object) -> dict[str, Any]:
    """The transport lets no request through."""
    raise AssertionError(METHOD_NOT_FOUND, method)


async def _never_told(_context: object, _method: str, _params: object) -> None:
    """The transport lets no notification through."""
