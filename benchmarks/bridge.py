"""What one call of an external MCP tool costs: made directly, through the bridge, and by a model in a session.

Run as `python -m benchmarks.bridge [ROUNDS]`. All figures are medians, in milliseconds, of calls one after the other to
the same small echo server; each round makes one call of each kind, so that what slows one down slows all down.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from pi_session_mcp.bridge.results import Delivered, Outcome
from pi_session_mcp.bridge.servers import BridgeBounds, ExternalServers, ToolCall
from pi_session_mcp.config.load import load
from pi_session_mcp.config.model import Grant, McpServer
from pi_session_mcp.demo.model import Call, Say, ScriptedModel, write_agent_directory
from pi_session_mcp.server.compose import compose

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pi_session_mcp.sessions.registry import Registry

ROUNDS = 50
ARGUMENTS = {"text": "x" * 200}
SERVER = """
import json, sys
tool = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
for line in sys.stdin:
    request = json.loads(line)
    match request["method"]:
        case "initialize":
            result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "echo", "version": "1"}
        case "tools/list":
            result = {"tools": [tool]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": request["params"]["arguments"]["text"]}]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
ARGV = (sys.executable, "-I", "-c", SERVER)


async def main(rounds: int) -> None:
    """Measure, and print one line for each kind of call."""
    with tempfile.TemporaryDirectory() as directory, ScriptedModel() as model:
        async with AsyncExitStack() as stack:
            kinds = {
                "direct: the SDK's client and transport": await direct(stack),
                "through the bridge: judged, called, projected": await bridged(stack, Path(directory)),
                **await in_turns(stack, Path(directory), model),
            }
            for call in kinds.values():  # the first of each kind imports and compiles
                await call()
            taken: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(rounds):
                for kind, call in kinds.items():
                    began = time.perf_counter()
                    await call()
                    taken[kind].append((time.perf_counter() - began) * 1000)
    for kind, times in taken.items():
        print(f"{statistics.median(times):8.2f} ms  {kind}")


async def direct(stack: AsyncExitStack) -> Callable[[], Awaitable[None]]:
    """A call as any program makes it with the official client."""
    parameters = StdioServerParameters(command=ARGV[0], args=list(ARGV[1:]))
    client = await stack.enter_async_context(Client(stdio_client(parameters), mode="legacy", cache=None))
    await client.list_tools()

    async def call() -> None:
        await client.call_tool("echo", ARGUMENTS)

    return call


async def bridged(stack: AsyncExitStack, directory: Path) -> Callable[[], Awaitable[None]]:
    """A call as the server makes it for a host, without the host."""
    bounds = BridgeBounds(startup_s=60.0, call_s=60.0)
    external = await stack.enter_async_context(ExternalServers({}, bounds))
    grants = {"echo": Grant(name="echo", read_only=True)}
    server = McpServer(command=ARGV[0], args=ARGV[1:], env_from={}, tools=grants)
    session = external.start({"library": server}, directory)
    await session.ready()
    arguments = json.dumps(ARGUMENTS)
    number = 0

    async def call() -> None:
        nonlocal number
        number += 1
        done = anyio.Event()

        def end(outcome: Outcome) -> None:
            assert isinstance(outcome, Delivered)
            done.set()

        session.begin(ToolCall(number, "mcp_library_echo", arguments, arguments), end)
        await done.wait()

    return call


async def in_turns(
    stack: AsyncExitStack, directory: Path, model: ScriptedModel
) -> dict[str, Callable[[], Awaitable[None]]]:
    """Whole turns of a real session: the model answers at once, or calls a tool first."""
    (directory / "workspace").mkdir()
    write_agent_directory(directory / "agent", model.base_url)
    configuration = directory / "config.json"
    configuration.write_text(json.dumps(_configuration(directory)))
    parts = await stack.enter_async_context(compose(load(configuration), lambda _: None, lambda *_: None))
    session = (await parts.registry.start("project")).id
    model.on("built-in tool", Call("ls", {}), Say("ok"))
    model.on("granted tool", Call("mcp_library_echo", ARGUMENTS), Say("ok"))
    return {
        "turn in which the model calls no tool": _turn(parts.registry, session, "no tool"),
        "turn in which it calls Pi's ls": _turn(parts.registry, session, "built-in tool"),
        "turn in which it calls the granted tool": _turn(parts.registry, session, "granted tool"),
    }


def _turn(registry: Registry, session: str, prompt: str) -> Callable[[], Awaitable[None]]:
    async def turn() -> None:
        _, begun = await registry.prompt(session, prompt)
        ended = await registry.wait_turn(session, begun.turn_id, timeout_s=60)
        assert ended.state == "completed"

    return turn


def _configuration(directory: Path) -> dict[str, Any]:
    grants = {"echo": {"name": "echo", "readOnly": True}}
    return {
        "workspaces": {"project": str(directory / "workspace")},
        "piAgentDirectory": str(directory / "agent"),
        "executionProfiles": {
            "granted": {
                "default": True,
                "permissionProfile": "read-only",
                "provider": "scripted",
                "model": "scripted-1",
                "thinkingLevel": "off",
                "mcpServers": {"library": {"command": ARGV[0], "args": list(ARGV[1:]), "tools": grants}},
            }
        },
    }


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
