"""`python -m benchmarks.bridge`: what one call of an external MCP tool costs.

It is made directly, through the bridge, and by a model in a session. All figures are medians, in milliseconds, of calls
one after the other to the same small echo server; each round makes one call of each kind, so that what slows one down
slows all down.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from benchmarks.budgets import Above, Budget, Verdict
from benchmarks.figures import Unit
from benchmarks.parts import Part
from benchmarks.report import number, table, verdict_as_json, verdicts_as_text
from pi_session_mcp.bridge.results import Delivered, Outcome
from pi_session_mcp.bridge.servers import ExternalServers, ToolCall
from pi_session_mcp.config.load import load
from pi_session_mcp.config.model import Grant, McpServer
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.demo.model import Call, Say, ScriptedModel, write_agent_directory
from pi_session_mcp.keeper.orphans import adopt_orphans
from pi_session_mcp.server.assembly import assembled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pi_session_mcp.sessions.registry import Registry

MARK: Final = "bridge"
TITLE: Final = "One call of an external MCP tool"
ROUNDS: Final = 50
WITHIN_S: Final = 120
DIRECT: Final = "directly, with the MCP SDK's client and transport"
BRIDGED: Final = "through the bridge: arguments judged twice, called, result projected"
BUILT_IN: Final = "a turn in which it calls Pi's `ls`"
GRANTED: Final = "a turn in which it calls the granted tool"
BOUNDS: Final = (
    ("a call through the bridge, above a direct one", BRIDGED, DIRECT, 3.0),
    ("a turn with a granted tool, above one with a built-in tool", GRANTED, BUILT_IN, 10.0),
)
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


def part(rounds: int) -> Part:
    """Measure so many rounds; within two minutes, or it failed."""
    try:
        return _part(anyio.run(measure, rounds))
    except TimeoutError:
        return Part(MARK, TITLE, "", verdicts=verdicts(None), failures=[f"it took longer than {WITHIN_S} s"])


def _part(taken: Mapping[str, Sequence[float]]) -> Part:
    medians = {kind: statistics.median(times) for kind, times in taken.items()}
    rows = [["Call, median", "ms"], *([kind, number(value)] for kind, value in medians.items())]
    found = verdicts(taken)
    values = {"ms": dict(taken), "budgets": [verdict_as_json(one) for one in found]}
    return Part(MARK, TITLE, f"{table(rows)}\n\n{verdicts_as_text(found)}", verdicts=found, values=values)


def verdicts(taken: Mapping[str, Sequence[float]] | None) -> list[Verdict]:
    """Whether each way is near enough to the one that it is compared with: bounds of our own, on the pairs' median."""
    return [_verdict(taken, *bound) for bound in BOUNDS]


def _verdict(taken: Mapping[str, Sequence[float]] | None, what: str, kind: str, beside: str, more_ms: float) -> Verdict:
    pairs = [] if taken is None else zip(taken[kind], taken[beside], strict=True)
    more = [one - other for one, other in pairs]
    seen = statistics.median(more) if more else None
    return Verdict(Budget(what, kind, Above(more_ms)), seen, more_ms, f"{Unit.MS} more")


async def measure(rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round, for each kind of call. Raises `TimeoutError`."""
    with tempfile.TemporaryDirectory() as directory, ScriptedModel() as model, anyio.fail_after(WITHIN_S):
        async with AsyncExitStack() as stack:
            kinds = {
                DIRECT: await direct(stack),
                BRIDGED: await bridged(stack, Path(directory)),
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
    return taken


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
    bounds = Deadlines(mcp_startup_s=60.0, mcp_call_s=60.0)
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
    adopt_orphans()
    parts = await stack.enter_async_context(assembled(load(configuration), lambda _: None, lambda *_: None))
    session = (await parts.registry.start("project")).id
    model.on("built-in tool", Call("ls", {}), Say("ok"))
    model.on("granted tool", Call("mcp_library_echo", ARGUMENTS), Say("ok"))
    return {
        "a turn in which the model calls no tool": _turn(parts.registry, session, "no tool"),
        BUILT_IN: _turn(parts.registry, session, "built-in tool"),
        GRANTED: _turn(parts.registry, session, "granted tool"),
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
    from benchmarks.__main__ import main

    sys.exit(main(["--part", MARK, *sys.argv[1:]]))
