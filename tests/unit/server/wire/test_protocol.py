"""The protocol's answers are those of the SDK's server: over every version, era, shape and order that clients use."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    CallToolResult,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ListToolsResult,
    TextContent,
    Tool,
    methods,
)

from pi_session_mcp import __version__
from pi_session_mcp.server.catalog import INSTRUCTIONS, SERVER_NAME, TOOLS
from pi_session_mcp.server.wire import params as params_module
from pi_session_mcp.server.wire.frames import Notification, Request, slot
from pi_session_mcp.server.wire.protocol import (
    CONNECTION_CLOSED,
    HANDSHAKE_METHODS,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    MODERN_METHODS,
    MODERN_VERSION,
    Answer,
    Call,
    Cancelled,
    Identity,
    Protocol,
    Reply,
)
from tests.unit.server.wire.spoken import (
    CLAUDE,
    CODEX_CAPABILITIES,
    EVERYTHING,
    FULL_INFO,
    USUAL,
    Spoken,
    handshake,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

IDENTITY: Final = Identity(SERVER_NAME, __version__, INSTRUCTIONS, TOOLS)
REPLY: Final = Reply('{"ok":true}', {"ok": True, "text": "ä", "none": None}, is_error=False)
OURS: Final = {-32600, -32022}
"""Errors whose sentences are our own; their codes and data are the SDK's."""

pytestmark = pytest.mark.timeout(600)


def messages(spoken: Sequence[Spoken]) -> list[Request | Notification]:
    return [
        Request(number, method, params) if wanted else Notification(method, params)
        for number, (method, params, wanted) in enumerate(spoken)
    ]


def ours(spoken: Sequence[Spoken]) -> list[dict[str, Any]]:
    """What the protocol answers, with each call answered at once."""
    protocol, answers = Protocol(IDENTITY), []
    for message in messages(spoken):
        heard = protocol.hear(message)
        if isinstance(heard, Answer):
            answers.append(heard.wire)
        elif isinstance(heard, Call):
            answers.append(protocol.result(heard, REPLY))
    return answers


def sdk_server() -> Server[Any]:
    tools = ListToolsResult(tools=[Tool.model_validate(tool) for tool in TOOLS])

    async def list_tools(_ctx: object, _params: object) -> ListToolsResult:
        return tools

    async def call_tool(_ctx: object, params: Any) -> CallToolResult:
        if params.name not in {tool["name"] for tool in TOOLS}:
            raise MCPError(code=INVALID_PARAMS, message="Unknown tool")
        return CallToolResult(
            content=[TextContent(text=REPLY.text)], structured_content=REPLY.structure, is_error=REPLY.is_error
        )

    return Server(
        SERVER_NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


SERVER: Final = sdk_server()


async def the_sdks(spoken: Sequence[Spoken]) -> list[dict[str, Any]]:
    """What the SDK's server answers to the same messages, given one after the other."""
    to_server, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_server = anyio.create_memory_object_stream[SessionMessage](8)
    answers: list[dict[str, Any]] = []
    async with to_server, from_server, anyio.create_task_group() as tasks:
        tasks.start_soon(SERVER.run, reading, writing, SERVER.create_initialization_options())
        with anyio.fail_after(20):
            for message in messages(spoken):
                await to_server.send(to_sdk(message))
                if isinstance(message, Request):
                    answers.append(as_wire((await from_server.receive()).message))
        tasks.cancel_scope.cancel()
    return answers


def to_sdk(message: Request | Notification) -> SessionMessage:
    if isinstance(message, Notification):
        return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=message.method, params=message.params))
    request = JSONRPCRequest(jsonrpc="2.0", id=message.id, method=message.method, params=message.params)
    return SessionMessage(request, ServerMessageMetadata())


def as_wire(message: Any) -> dict[str, Any]:
    if isinstance(message, JSONRPCResponse):
        return {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    assert isinstance(message, JSONRPCError)
    error = message.error
    data = {} if error.data is None else {"data": error.data}
    return {"jsonrpc": "2.0", "id": message.id, "error": {"code": error.code, "message": error.message, **data}}


def comparable(answer: dict[str, Any]) -> str:
    """As JSON, without the sentences that are our own."""
    error = answer.get("error")
    if error and (error["code"] in OURS or (error["code"] == INVALID_PARAMS and "data" not in error)):
        answer = {**answer, "error": {**error, "message": ""}}
    return json.dumps(answer, sort_keys=True, indent=1)


async def check(spoken: Sequence[Spoken]) -> None:
    mine, theirs = ours(spoken), await the_sdks(spoken)
    assert [comparable(one) for one in mine] == [comparable(one) for one in theirs], spoken


OPENINGS: Final[list[list[Spoken]]] = [
    [],
    [("ping", None, True)],
    [("initialize", handshake(), True)],
    [("initialize", handshake("2024-11-05"), True), ("notifications/initialized", None, False)],
    [("server/discover", CLAUDE, True)],
    [("notifications/initialized", None, False)],
    [("notifications/initialized", {"_meta": 1}, False)],
    [("server/discover", None, True)],
]


@pytest.mark.parametrize(
    "opening", OPENINGS, ids=lambda opening: "+".join(method for method, _, _ in opening) or "none"
)
def test_after_every_opening_every_message_is_answered_as_the_sdk_does(opening: list[Spoken]) -> None:
    async def all_agree() -> None:
        for message in EVERYTHING:
            await check([*opening, message, ("ping", None, True)])

    anyio.run(all_agree)


def test_every_order_of_three_usual_messages_is_answered_as_the_sdk_does() -> None:
    async def all_agree() -> None:
        for spoken in product(USUAL, repeat=3):
            await check(spoken)

    anyio.run(all_agree)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@drawn(st.lists(st.sampled_from(USUAL) | st.sampled_from(EVERYTHING), max_size=12))
def test_any_order_of_any_messages_is_answered_as_the_sdk_does(spoken: list[Spoken]) -> None:
    anyio.run(check, spoken)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_the_usual_handshake_is_answered_in_every_version(version: str) -> None:
    spoken: list[Spoken] = [
        ("initialize", handshake(version, capabilities=CODEX_CAPABILITIES, clientInfo=FULL_INFO), True),
        ("notifications/initialized", None, False),
        ("tools/list", {"_meta": {"progressToken": 1}}, True),
        ("tools/call", {"name": "pi_session_list", "arguments": {}}, True),
        ("resources/list", None, True),
        ("ping", None, True),
    ]

    assert ours(spoken)[0]["result"]["protocolVersion"] == version
    anyio.run(check, spoken)


@pytest.mark.parametrize("count", [8, 9])
def test_so_many_notifications_before_the_first_request_are_remembered(count: int) -> None:
    early: list[Spoken] = [("unknown", None, False)] * (count - 1)

    anyio.run(check, [*early, ("notifications/initialized", None, False), ("tools/list", None, True)])


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, MODERN_VERSION])
def test_the_methods_of_each_version_are_the_sdks(version: str) -> None:
    ours_here = MODERN_METHODS if version == MODERN_VERSION else HANDSHAKE_METHODS

    assert ours_here == {method for method, one in methods.CLIENT_REQUESTS if one == version}


def test_what_is_taken_for_certain_is_sound_to_the_sdk_in_every_version() -> None:
    def is_sound(method: str, version: str, said: dict[str, Any] | None) -> bool:
        return params_module._is_sound_to_the_sdk(method, version, said)

    for method, said, _ in EVERYTHING:
        if params_module.is_certain(method, said):
            versions = {
                one for name, one in [*methods.CLIENT_REQUESTS, *methods.CLIENT_NOTIFICATIONS] if name == method
            }
            enveloped = params_module.is_enveloped(said)
            for version in versions - ({MODERN_VERSION} if not enveloped else set()):
                assert is_sound(method, version, said), (method, version, said)


# --- calls ------------------------------------------------------------------------------------------------------------


def ready() -> Protocol:
    protocol = Protocol(IDENTITY)
    protocol.hear(Request("hello", "initialize", handshake()))
    return protocol


def called(protocol: Protocol, message_id: int | str, **more: Any) -> Call:
    heard = protocol.hear(Request(message_id, "tools/call", {"name": "pi_session_list", **more}))
    assert isinstance(heard, Call)
    return heard


def test_a_call_carries_what_the_client_said() -> None:
    call = called(ready(), "7", arguments={"a": 1}, _meta={"progressToken": "t"})

    assert call == Call("7", "pi_session_list", {"a": 1}, "t")


@pytest.mark.parametrize("number", [7, "7"])
def test_a_cancellation_names_its_slot(number: int | str) -> None:
    heard = ready().hear(Notification("notifications/cancelled", {"requestId": number, "reason": "canary"}))

    assert heard == Cancelled(slot(number)) == Cancelled(7)


@pytest.mark.parametrize("said", [None, {}, {"requestId": None}, {"requestId": True}, {"requestId": [1]}])
def test_a_cancellation_of_nothing_is_no_news(said: dict[str, Any] | None) -> None:
    assert ready().hear(Notification("notifications/cancelled", said)) is None


def test_progress_is_told_under_the_token_of_the_call() -> None:
    protocol = ready()

    assert protocol.progress(called(protocol, 1, _meta={"progressToken": "t"}), 3) == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": "t", "progress": 3, "message": "running"},
    }


def test_a_call_without_a_result_is_answered_with_an_error() -> None:
    protocol = ready()

    assert protocol.failure(called(protocol, "x"), CONNECTION_CLOSED, "Connection closed") == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": -32000, "message": "Connection closed"},
    }


@pytest.mark.parametrize(
    "message",
    [
        Request(1, "tools/call", {"name": "pi_session_list"}),
        Request(1, "tools/list", None),
        Request(1, "initialize", handshake()),
        Request(1, "server/discover", CLAUDE),
    ],
)
def test_what_usual_clients_say_is_judged_without_the_sdk(message: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        pytest.fail("the SDK was asked")

    monkeypatch.setattr(params_module, "_is_sound_to_the_sdk", refuse)

    assert ready().hear(message) is not None
    assert Protocol(IDENTITY).hear(message) is not None
