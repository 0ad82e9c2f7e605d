"""What waits to be written is bounded, and every answer is for one question."""

from __future__ import annotations

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from pi_session_mcp.bridge.outbox import MAX_BYTES, MAX_MESSAGES, Outbox

pytestmark = pytest.mark.anyio


class Overruns:
    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        self.count += 1


def request(number: int, said: str = "") -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method="m", params={"said": said})


async def test_lines_come_in_order_and_taking_waits() -> None:
    outbox = Outbox(Overruns().note)
    lines: list[bytes] = []

    async def take() -> None:
        lines.extend([await outbox.take(), await outbox.take()])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        await outbox.send(SessionMessage(request(1, "é")))
        await anyio.wait_all_tasks_blocked()
        outbox.put(JSONRPCNotification(jsonrpc="2.0", method="n"))
    assert lines == [
        '{"jsonrpc":"2.0","id":1,"method":"m","params":{"said":"é"}}\n'.encode(),
        b'{"jsonrpc":"2.0","method":"n"}\n',
    ]


async def test_so_many_messages_may_wait_and_no_more() -> None:
    overruns = Overruns()
    outbox = Outbox(overruns.note)
    for number in range(MAX_MESSAGES):
        outbox.put(request(number))
    assert overruns.count == 0
    for _ in range(2):
        with pytest.raises(anyio.BrokenResourceError):
            outbox.put(request(MAX_MESSAGES))
    assert overruns.count == 1


@pytest.mark.parametrize("more", [0, 1])
async def test_so_many_bytes_may_wait_and_no_more(more: int) -> None:
    overruns = Overruns()
    outbox = Outbox(overruns.note)
    overhead = len(request(1).model_dump_json()) + 1
    outbox.put(request(1, "x" * (MAX_BYTES // 2 - overhead)))
    try:
        outbox.put(request(2, "x" * (MAX_BYTES // 2 - overhead + more)))
    except anyio.BrokenResourceError:
        assert more
    assert overruns.count == more


async def test_what_was_taken_makes_room() -> None:
    overruns = Overruns()
    outbox = Outbox(overruns.note)
    for number in range(MAX_MESSAGES * 2):
        outbox.put(request(number))
        await outbox.take()
    assert overruns.count == 0


async def test_an_answer_to_nobody_may_be_for_a_notification_until_a_later_request_is_answered() -> None:
    outbox = Outbox(Overruns().note)
    told = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
    assert not outbox.forgives()
    outbox.put(request(1))
    outbox.put(told)
    outbox.settle(1)
    assert (outbox.forgives(), outbox.forgives()) == (True, False)
    outbox.put(told)
    outbox.put(request(2))
    outbox.settle(2)
    assert not outbox.forgives()


async def test_an_answer_settles_its_question_once_however_the_number_is_written() -> None:
    outbox = Outbox(Overruns().note)
    for number in (1, 2, 3):
        outbox.put(request(number))
    assert (outbox.settle(1), outbox.settle(1)) == (1, None)
    assert (outbox.settle("2"), outbox.settle(2)) == (2, None)
    outbox.put(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 3}))
    assert outbox.settle(3) is None
    assert [outbox.has_asked(number) for number in (1, 3, "3", 0, 4, -1, None, "x", "9" * 5000)] == [True] * 3 + [
        False
    ] * 6
