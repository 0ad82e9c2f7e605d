"""Talks to the registered command as a client would, to see that it is our server. Starts no session."""

from __future__ import annotations

import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio

from pi_session_mcp import __version__
from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.keeper.child import Command, CommandNotStarted
from pi_session_mcp.keeper.pipes import INPUT, OUTPUT
from pi_session_mcp.keeper.running import running
from pi_session_mcp.platform.lines import LineSplitter
from pi_session_mcp.platform.text import path_text
from pi_session_mcp.setup.result import SetupCode, Stopped
from pi_session_mcp.setup.steps import Doing, Running, unwatched

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.keeper.child import Child
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.steps import OnStep

_LINE_LIMIT_BYTES: Final = 4 * 1024 * 1024
_PROTOCOL: Final = "2025-06-18"
_CAPABILITIES: Final = "pi_capabilities_get"
_SERVER: Final = "pi-session-mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """What to start and what to expect. `tools` are the names of exactly the tools that it has to offer."""

    registration: Registration
    environ: Mapping[str, str]
    directory: Path
    tools: frozenset[str]
    held: int | None = None
    deadlines: Deadlines = DEADLINES
    on_step: OnStep = unwatched


async def verify(handshake: Handshake) -> None:
    """Return when the server has answered everything as it should and has ended. Raises `Stopped`."""
    handshake.on_step(Doing.VERIFY.at("starting"), None)
    try:
        with anyio.fail_after(handshake.deadlines.verify_s):
            await _talk(handshake)
    except TimeoutError:
        raise Stopped(SetupCode.MCP_TIMEOUT) from None
    handshake.on_step(Doing.VERIFY.at("done"), None)


async def _talk(handshake: Handshake) -> None:
    ended = False
    try:
        async with running(_command(handshake)) as server:
            await server.started()
            assert server.command_pid is not None
            handshake.on_step(Doing.VERIFY.at("running"), Running(server.pid, server.command_pid))
            await _check(_Conversation(server), handshake.tools)
            server.hang_up()
            with anyio.move_on_after(handshake.deadlines.process_shutdown_s):
                await server.over()
                ended = True
    except (OSError, CommandNotStarted):
        raise Stopped(SetupCode.MCP_FAILED) from None
    if not ended or server.exit_code != 0:
        raise Stopped(SetupCode.MCP_FAILED)


def _command(handshake: Handshake) -> Command:
    registration = handshake.registration
    return Command(
        argv=tuple(map(path_text, (registration.command, *registration.arguments))),
        environment={**handshake.environ, **_variables(registration)},
        directory=str(handshake.directory),
        grace_s=handshake.deadlines.verify_grace_s,
        patience_s=handshake.deadlines.setup_gone_s,
        streams=(INPUT, OUTPUT),
        held=handshake.held,
    )


def _variables(registration: Registration) -> dict[str, str]:
    return {name: path_text(value) for name, value in registration.environment.items()}


class _Conversation:
    """Requests and their answers, one at a time. Raises `Stopped` for anything that is no answer."""

    def __init__(self, server: Child) -> None:
        self._server = server
        self._splitter = LineSplitter(_LINE_LIMIT_BYTES)
        self._lines: deque[bytes] = deque()
        self._last_id = 0

    async def ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The result of one request."""
        self._last_id += 1
        await self._send({"id": self._last_id, "method": method, "params": parameters})
        while True:
            message = _parsed(await self._line())
            if "method" not in message:
                break
        if message.get("id") != self._last_id or not isinstance(message.get("result"), dict):
            raise Stopped(SetupCode.MCP_FAILED)
        result: dict[str, Any] = message["result"]
        return result

    async def tell(self, method: str) -> None:
        """Send a notification."""
        await self._send({"method": method})

    async def _send(self, message: dict[str, Any]) -> None:
        await self._server.write(json.dumps({"jsonrpc": "2.0", **message}).encode("ascii") + b"\n")

    async def _line(self) -> bytes:
        while not self._lines:
            chunk = await self._server.read()
            self._lines.extend(self._splitter.feed(chunk))
            if not chunk or self._splitter.too_long:
                raise Stopped(SetupCode.MCP_FAILED)
        return self._lines.popleft()


async def _check(server: _Conversation, tools: frozenset[str]) -> None:
    client = {"name": "pi-session-mcp-setup", "version": __version__}
    hello = await server.ask("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client})
    await server.tell("notifications/initialized")
    listed = await server.ask("tools/list", {})
    answer = await server.ask("tools/call", {"name": _CAPABILITIES, "arguments": {}})
    if not (is_our_server(hello) and answers_by_its_own_schema(listed, answer, tools)):
        raise Stopped(SetupCode.MCP_UNSUPPORTED)


def is_our_server(hello: Mapping[str, Any]) -> bool:
    """Whether `initialize` was answered by our server: its name, its version, tools, and the protocol asked for."""
    about, can = hello.get("serverInfo"), hello.get("capabilities")
    if not isinstance(about, dict) or not isinstance(can, dict):
        return False
    ours = (about.get("name"), about.get("version")) == (_SERVER, __version__)
    return ours and hello.get("protocolVersion") == _PROTOCOL and isinstance(can.get("tools"), dict)


def answers_by_its_own_schema(listed: Mapping[str, Any], answer: Mapping[str, Any], tools: Iterable[str]) -> bool:
    """Whether exactly `tools` are offered, and the capabilities keep to the schema that the server publishes for them.

    A copy of the schema would refuse a field that was added later.
    """
    offered = listed.get("tools")
    if not isinstance(offered, list) or "nextCursor" in listed or not all(isinstance(one, dict) for one in offered):
        return False
    names = [one.get("name") for one in offered]
    if sorted(map(str, names)) != sorted(tools):
        return False
    schema = next(one.get("outputSchema") for one in offered if one.get("name") == _CAPABILITIES)
    return isinstance(schema, dict) and _is_good_answer(answer, schema)


def _is_good_answer(answer: Mapping[str, Any], schema: dict[str, Any]) -> bool:
    told = answer.get("structuredContent")
    if answer.get("isError") or not isinstance(told, dict) or told.get("ok") is not True:
        return False
    fields = set(schema.get("properties", {})) - {"error"}
    return set(told) == fields and _is_valid(told, schema) and _text_says_the_same(answer, told)


def _is_valid(told: dict[str, Any], schema: dict[str, Any]) -> bool:
    from jsonschema import Draft202012Validator, SchemaError  # slow to import, and only a verification needs it
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
        return bool(Draft202012Validator(schema, registry=Registry()).is_valid(told))
    except (SchemaError, Unresolvable, RecursionError):
        return False


def _text_says_the_same(answer: Mapping[str, Any], told: dict[str, Any]) -> bool:
    match answer.get("content"):
        case [{"type": "text", "text": str(text)}]:
            with suppress(ValueError, RecursionError):
                return bool(json.loads(text) == told)
    return False


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise Stopped(SetupCode.MCP_FAILED) from None
    if not isinstance(message, dict):
        raise Stopped(SetupCode.MCP_FAILED)
    return message
