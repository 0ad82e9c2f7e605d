"""The calls of one session are bounded in size, all together, and each is answered once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pi_session_mcp.bridge.results import Failed
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.host.protocol import Call
from pi_session_mcp.sessions.hosted import hosted_session
from pi_session_mcp.sessions.hosted.hosted_session import HostedSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.bridge.results import Outcome
    from pi_session_mcp.bridge.servers import ToolCall
    from pi_session_mcp.host.protocol import Done

BOUND = 1000


class Channel:
    """Keeps what the host would be told."""

    def __init__(self) -> None:
        self.ended: list[Done] = []
        self.end_call = self.ended.append

    def place(self, _sink: object) -> int:
        return 1


class Servers:
    """Keeps the calls that were begun, until the test ends them."""

    def __init__(self) -> None:
        self.begun: dict[int, Callable[[Outcome], None]] = {}

    def begin(self, call: ToolCall, answer: Callable[[Outcome], None]) -> None:
        self.begun[call.number] = answer


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_session, "MAX_CALL_BYTES", BOUND)


def call(number: int, size: int) -> Call:
    return Call(call=number, session=1, tool="t", arguments="x" * (size // 2), given="x" * (size - size // 2))


def test_arguments_are_taken_up_to_the_bound_and_again_once_a_call_has_ended() -> None:
    channel, servers = Channel(), Servers()
    session = HostedSession(cast("Any", SimpleNamespace(client=channel)), cast("Any", None), Deadlines(), own_host=True)
    session.own_servers(cast("Any", servers))

    session.host_event(call(1, BOUND - 1))
    session.host_event(call(2, 1))
    session.host_event(call(3, 1))
    assert [*servers.begun] == [1, 2]
    assert [(done.done, done.failed) for done in channel.ended] == [(3, True)]

    servers.begun[1](Failed())
    session.host_event(call(4, BOUND - 1))
    session.host_event(call(5, 1))
    assert [*servers.begun] == [1, 2, 4]
    assert [done.done for done in channel.ended] == [3, 1, 5]
