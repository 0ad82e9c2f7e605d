"""The front's answers are those of the SDK: over every version, era, shape and order that clients use."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from mcp.server.lowlevel import Server
from mcp_types import ListToolsResult, Tool

from pi_session_mcp import __version__
from pi_session_mcp.server import frames
from pi_session_mcp.server.catalog import INSTRUCTIONS, SERVER_NAME, TOOLS
from pi_session_mcp.server.descriptors import Inlet, Outlet
from pi_session_mcp.server.front import HANDSHAKE_VERSIONS, MODERN_VERSION, Front, Given, Identity
from pi_session_mcp.server.stderr import TransportErrors
from pi_session_mcp.server.transport import Connection, Transport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pi_session_mcp.diagnostics import Diagnostic

IDENTITY: Final = Identity(SERVER_NAME, __version__, INSTRUCTIONS, TOOLS)

INFO: Final = {"name": "client", "version": "1"}
FULL_INFO: Final = {
    **INFO,
    "title": "Client",
    "description": "A client",
    "websiteUrl": "https://client.example",
    "unknown": [1],
}
CAPABILITIES: Final[dict[str, Any]] = {
    "roots": {"listChanged": True},
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"context": {}, "tools": {}},
    "experimental": {"codex/auth-change": {"deep": [[[1]]]}},
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}},
    "unknown": 7,
}
CODEX_CAPABILITIES: Final[dict[str, Any]] = {
    "experimental": {"codex/auth-change": {}},
    "elicitation": {"form": {}, "url": {}},
}


def envelope(version: Any = MODERN_VERSION, **more: Any) -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": version, f"{prefix}clientCapabilities": {}, **more}
    return {"_meta": {key: value for key, value in meta.items() if value is not ...}}


def handshake(version: Any = "2025-06-18", **more: Any) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": INFO, **more}
    return {key: value for key, value in params.items() if value is not ...}


PREFIX: Final = "io.modelcontextprotocol/"
CLAUDE: Final = envelope(**{f"{PREFIX}clientInfo": FULL_INFO, f"{PREFIX}clientCapabilities": CAPABILITIES})

INITIALIZES: Final = [
    *(handshake(version) for version in (*HANDSHAKE_VERSIONS, MODERN_VERSION, "2099-01-01", "", "x")),
    handshake(capabilities=CAPABILITIES, clientInfo=FULL_INFO),
    handshake("2025-06-18", capabilities=CODEX_CAPABILITIES),
    handshake(_meta={"progressToken": 1, "x": None}),
    {**handshake(), **envelope()},
    handshake(5),
    handshake(None),
    handshake(...),
    handshake(capabilities=...),
    handshake(capabilities=None),
    handshake(capabilities={"roots": {"listChanged": "yes"}}),
    handshake(capabilities={"roots": 1}),
    handshake(capabilities={"experimental": {"x": 1}}),
    handshake(capabilities={"experimental": None}),
    handshake(capabilities={"sampling": {"tools": 1}}),
    handshake(capabilities={"sampling": {"other": 1}}),
    handshake(capabilities={"elicitation": {"form": []}}),
    handshake(capabilities={"extensions": {"x": 1}}),
    handshake(capabilities={"tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}}}),
    handshake(capabilities={"tasks": 1}),
    handshake(clientInfo=...),
    handshake(clientInfo={"name": "client"}),
    handshake(clientInfo={**INFO, "title": 1}),
    handshake(clientInfo={**INFO, "title": None}),
    handshake(clientInfo={**INFO, "websiteUrl": "no address"}),
    handshake(clientInfo={**INFO, "icons": [{"src": 1}]}),
    handshake(_meta=1),
    handshake(_meta=None),
    handshake(_meta={"progressToken": 1.5}),
    handshake(_meta={"progressToken": True}),
]
PARAMS: Final[list[dict[str, Any] | None]] = [
    None,
    {},
    {"cursor": None},
    {"cursor": "x"},
    {"cursor": 1},
    {"other": 1},
    {"_meta": {}},
    {"_meta": None},
    {"_meta": 1},
    {"_meta": {"progressToken": "t", "unknown/key": {}}},
    {"_meta": {"progressToken": []}},
    envelope(),
    CLAUDE,
    {**envelope(), "cursor": None, "other": 1},
    {**envelope(), "cursor": "x"},
    envelope("2025-06-18"),
    envelope("2099-01-01"),
    envelope(None),
    envelope(7),
    envelope(**{f"{PREFIX}clientCapabilities": ...}),
    envelope(**{f"{PREFIX}clientCapabilities": None}),
    envelope(**{f"{PREFIX}clientCapabilities": {"sampling": 1}}),
    envelope(**{f"{PREFIX}clientCapabilities": {"roots": {"listChanged": 1}}}),
    envelope(**{f"{PREFIX}clientCapabilities": {"tasks": {"x": 1}}}),
    envelope(**{f"{PREFIX}clientInfo": None}),
    envelope(**{f"{PREFIX}clientInfo": {"name": "client"}}),
    envelope(**{f"{PREFIX}clientInfo": 1}),
    envelope(**{f"{PREFIX}logLevel": "debug"}),
    envelope(**{f"{PREFIX}logLevel": "loud"}),
    envelope(progressToken=3, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    envelope(progressToken={}),
]
METHODS: Final = [
    "ping",
    "tools/list",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/list",
    "unknown",
    "",
    "notifications/initialized",
]
NOTICES: Final = [
    ("notifications/initialized", None),
    ("notifications/initialized", {"_meta": {"x": 1}}),
    ("notifications/initialized", {"_meta": 1}),
    ("notifications/cancelled", {"requestId": 0, "reason": "x"}),
    ("notifications/cancelled", {"requestId": "0"}),
    ("notifications/cancelled", {}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("notifications/roots/list_changed", None),
    ("unknown", {"x": 1}),
]

Spoken = tuple[str, "dict[str, Any] | None", bool]
"""Method, parameters, and whether an answer is wanted."""

REQUESTS: Final[list[Spoken]] = [
    *(("initialize", params, True) for params in INITIALIZES),
    *((method, params, True) for method, params in product(METHODS, PARAMS)),
]
EVERYTHING: Final[list[Spoken]] = [*REQUESTS, *((method, params, False) for method, params in NOTICES)]

USUAL: Final[list[Spoken]] = [
    ("initialize", handshake("2024-11-05"), True),
    ("server/discover", None, True),
    ("server/discover", CLAUDE, True),
    ("tools/list", None, True),
    ("tools/list", CLAUDE, True),
    ("ping", None, True),
    ("resources/list", {}, True),
    ("notifications/initialized", None, False),
    ("notifications/cancelled", {"requestId": 0}, False),
]


def messages(spoken: Sequence[Spoken]) -> list[frames.Request | frames.Notification]:
    return [
        frames.Request(number, method, params) if wanted else frames.Notification(method, params)
        for number, (method, params, wanted) in enumerate(spoken)
    ]


def given_by_the_front(spoken: Sequence[Spoken]) -> list[Given]:
    """What the front deals with, up to the first message that it leaves to the SDK."""
    front = Front(IDENTITY)
    for message in messages(spoken):
        if front.deal_with(message) is None:
            break
    return front.given


def sdk_server() -> Server[Any]:
    tools = ListToolsResult(tools=[Tool.model_validate(tool) for tool in TOOLS])

    async def list_tools(_ctx: object, _params: object) -> ListToolsResult:
        return tools

    async def call_tool(_ctx: object, _params: object) -> Any:
        raise AssertionError

    return Server(
        SERVER_NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


SERVER: Final = sdk_server()
END: Final = b'{"jsonrpc":"2.0","id":"end","method":"ping"}'


@contextmanager
def pipes() -> Iterator[tuple[int, int, int]]:
    """Where nothing comes in, where answers go, and where they can be read."""
    silent, spare = os.pipe()
    answers, outlet = os.pipe()
    try:
        yield silent, outlet, answers
    finally:
        for fd in (silent, spare, answers, outlet):
            os.close(fd)


async def agrees(given: Sequence[Given]) -> bool:
    """Whether the SDK, given the same messages in the same order, says the same."""
    said: list[Diagnostic] = []
    with pipes() as (silent, outlet, answers):
        connection = Connection(
            Inlet(silent), Outlet(outlet), frames.LineSplitter(), TransportErrors(said.append), tuple(given), (END,)
        )
        transport = Transport(connection, said.append)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(SERVER.run, transport.reading, transport.writing, SERVER.create_initialization_options())
            with anyio.fail_after(20):
                while not transport.output.in_flight and not transport.answers_differ:
                    await anyio.lowlevel.checkpoint()
                while transport.output.in_flight and not transport.answers_differ:
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        if not transport.answers_differ:
            [only] = os.read(answers, 65536).splitlines()
            assert json.loads(only)["id"] == "end"
    assert said == []
    return not transport.answers_differ


def check(spoken: Sequence[Spoken]) -> None:
    given = given_by_the_front(spoken)
    if any(each.answer is not None for each in given):
        assert anyio.run(agrees, given), [(each.message, each.answer) for each in given]


pytestmark = pytest.mark.timeout(600)


def test_after_every_opening_every_message_is_answered_as_the_sdk_does() -> None:
    openings: list[list[Spoken]] = [
        [],
        [("ping", None, True)],
        [("initialize", handshake(), True)],
        [("initialize", handshake("2024-11-05"), True), ("notifications/initialized", None, False)],
        [("server/discover", CLAUDE, True)],
        [("notifications/initialized", None, False)],
        [("server/discover", None, True)],
    ]

    async def all_agree() -> None:
        for opening, message in product(openings, EVERYTHING):
            given = given_by_the_front([*opening, message])
            if len(given) > len(opening) and given[-1].answer is not None:
                assert await agrees(given), (opening, message, given[-1].answer)

    anyio.run(all_agree)


def test_every_order_of_three_usual_messages_is_answered_as_the_sdk_does() -> None:
    async def all_agree() -> None:
        for spoken in product(USUAL, repeat=3):
            given = given_by_the_front(spoken)
            if given and given[-1].answer is not None:
                assert await agrees(given), given

    anyio.run(all_agree)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@drawn(st.lists(st.sampled_from(USUAL) | st.sampled_from(EVERYTHING), max_size=12))
def test_any_order_of_any_messages_is_answered_as_the_sdk_does(spoken: list[Spoken]) -> None:
    check(spoken)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_the_usual_handshake_is_answered_in_every_version(version: str) -> None:
    spoken: list[Spoken] = [
        ("initialize", handshake(version, capabilities=CODEX_CAPABILITIES, clientInfo=FULL_INFO), True),
        ("notifications/initialized", None, False),
        ("tools/list", {"_meta": {"progressToken": 1}}, True),
        ("resources/list", None, True),
        ("ping", None, True),
    ]
    given = given_by_the_front(spoken)

    assert len(given) == len(spoken)
    assert given[0].answer is not None
    assert given[0].answer["result"]["protocolVersion"] == version
    check(spoken)


def test_the_opening_without_a_handshake_is_answered() -> None:
    spoken: list[Spoken] = [("server/discover", CLAUDE, True), ("tools/list", CLAUDE, True)]
    given = given_by_the_front(spoken)

    assert [each.answer is not None for each in given] == [True, True]
    check(spoken)


def test_calls_and_whatever_follows_them_are_left_to_the_sdk() -> None:
    front = Front(IDENTITY)
    first, call = messages([("initialize", handshake(), True), ("tools/call", {"name": "pi_session_list"}, True)])

    assert front.deal_with(first) is not None
    assert front.deal_with(call) is None
    assert len(front.given) == 1


def test_an_endless_opening_is_left_to_the_sdk_at_some_point() -> None:
    assert len(given_by_the_front([("ping", None, True)] * 64)) == 64
    assert len(given_by_the_front([("ping", None, True)] * 65)) == 64


def test_more_early_notifications_than_the_sdk_remembers_are_left_to_it() -> None:
    assert len(given_by_the_front([("unknown", None, False)] * 8)) == 8
    assert len(given_by_the_front([("unknown", None, False)] * 9)) == 8


@pytest.mark.parametrize(
    "lie",
    [
        lambda answer: answer["result"].update(instructions="other"),
        lambda answer: answer["result"]["capabilities"]["tools"].update(listChanged=0),
        lambda answer: answer["result"].pop("serverInfo"),
        lambda answer: answer["result"].update(extra=None),
        lambda answer: (answer.pop("result"), answer.update(error={"code": -32601, "message": "Method not found"})),
    ],
)
def test_an_answer_that_differs_is_found_out(lie: Any) -> None:
    [given] = given_by_the_front([("initialize", handshake(), True)])
    wrong = json.loads(json.dumps(given.answer))
    lie(wrong)

    assert anyio.run(agrees, [given])
    assert not anyio.run(agrees, [Given(given.message, wrong)])
