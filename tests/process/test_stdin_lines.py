"""Whatever comes in on stdin, the server answers or ignores it, and answers the next valid request."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pi_session_mcp.server.wire.frames import MAX_LINE_BYTES
from pi_session_mcp.server.wire.in_flight import MAX_REQUESTS
from tests.process.client import Child
from tests.process.conftest import TRIVIAL, environment_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.process.conftest import Start


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with Child(environment_below(tmp_path_factory.mktemp("shared")), TRIVIAL) as child:
        child.initialize()
        child.call("pi_session_list")
        yield child


@pytest.fixture
def lasting(shared: Child) -> Child:
    """A server that all these tests talk to, after everything was loaded; it still answers."""
    assert shared.request("ping")["result"] == {}
    return shared


@pytest.fixture(params=["while-loading", "loaded"])
def child(request: pytest.FixtureRequest, start: Start, lasting: Child) -> Child:
    """A server before or after everything was loaded, for a test that leaves it as it was."""
    return lasting if request.param == "loaded" else start(command=TRIVIAL)


@pytest.fixture(params=["while-loading", "loaded"])
def ending(request: pytest.FixtureRequest, start: Start) -> Child:
    """The same, for a test that ends it."""
    started = start(command=TRIVIAL)
    if request.param == "loaded":
        started.initialize()
        started.call("pi_session_list")
    return started


def error(code: int, message_id: object = None) -> tuple[int, object]:
    return code, message_id


CASES = [
    (b"hello", error(-32700)),
    (b"\xff\xfe", error(-32700)),
    (b"\xef\xbb\xbf{}", error(-32700)),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', error(-32700)),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}', error(-32700)),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r{"jsonrpc":"2.0","id":2,"method":"ping"}', error(-32700)),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', error(-32700)),
    (b"[" * 100_000, error(-32700)),
    (b"\x00", error(-32700)),
    (b"[]", error(-32600)),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', error(-32600)),
    (b"{}", error(-32600)),
    (b"7", error(-32600)),
    (b"null", error(-32600)),
    (b'{"id":8,"method":"ping"}', error(-32600, 8)),
    (b'{"jsonrpc":"1.0","id":"x","method":"ping"}', error(-32600, "x")),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[]}', error(-32600, 8)),
    (b'{"jsonrpc":"2.0","id":8,"method":5}', error(-32600, 8)),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', error(-32600)),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', error(-32600)),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', error(-32600)),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', error(-32600)),
    (b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', error(-32600)),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', error(-32600, "\ud800")),
    (b'{"jsonrpc":"2.0","id":8,"method":1e400}', error(-32600, 8)),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":%b}' % (b"[" * 5000 + b"]" * 5000), error(-32600, 8)),
    (b'{"jsonrpc":"2.0","id":8,"method":"\\ud800"}', error(-32601, 8)),
    (b"x" * (MAX_LINE_BYTES + 1), error(-32600)),
    (b'{"x":"%b","id":8}' % (b"x" * MAX_LINE_BYTES), error(-32600, 8)),
    (b'{"jsonrpc":"2.0","id":8,"method":"unknown/method"}', error(-32601, 8)),
    (b'{"jsonrpc":"2.0","id":8,"method":"notifications/initialized"}', error(-32601, 8)),
]


@pytest.mark.parametrize(("line", "expected"), CASES, ids=[str(case[0][:40]) for case in CASES])
def test_a_bad_line_gets_its_error_and_the_next_request_its_answer(
    lasting: Child, line: bytes, expected: tuple[int, object]
) -> None:
    lasting.send_raw(line + b"\n")
    answer = lasting.receive()

    assert (answer["error"]["code"], answer["id"]) == expected
    assert "tools" in lasting.request("tools/list")["result"]


def test_all_bad_lines_in_one_connection_are_answered_in_order(child: Child) -> None:
    wanted = [case for case in CASES if case[1][0] != -32601]
    for line, _ in wanted:
        child.send_raw(line + b"\n")
    for line, expected in wanted:
        answer = child.receive()
        assert (answer["error"]["code"], answer["id"]) == expected, line[:60]

    child.initialize()
    assert child.call("pi_session_list", do="echo", text="still here") == {"echo": "still here"}


def test_bad_lines_are_said_on_stderr_once_a_second_and_without_their_text(ending: Child) -> None:
    for _ in range(200):
        ending.send_raw(b"canary-secret\n")
    for _ in range(200):
        ending.receive()
    ending.close_stdin()
    ending.wait()

    said = [line for line in ending.diagnostics if line["event"] == "mcp_transport_error"]
    assert 1 <= len(said) < 20
    assert said[0] == {"level": "warning", "event": "mcp_transport_error", "reason": "parse"}
    assert b"canary" not in ending.stderr


ODD = {
    "half a pair": rb'"\ud800"',
    "a large number": b"1e400",
    "many digits": b"9" * 5000,
    "deep arrays": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"0" + b"}" * 100_000,
    "a key that is half a pair": rb'{"\udc00":0}',
    "a key twice": b'{"a":0,"a":1}',
}


def test_a_request_with_anything_in_it_is_answered_under_its_id(child: Child) -> None:
    every = b",".join(b'"%d":%b' % each for each in enumerate(ODD.values()))
    child.send_raw(
        b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18",'
        b'"capabilities":{"experimental":{"x":{%b}}},"clientInfo":{"name":"c","version":"1",%b}}}\n' % (every, every)
    )
    assert child.answer_to("hello")["result"]["protocolVersion"] == "2025-06-18"
    for name, odd in ODD.items():
        child.send_raw(b'{"jsonrpc":"2.0","id":"%b","method":"ping","params":{"x":%b}}\n' % (name.encode(), odd))
        assert child.answer_to(name)["result"] == {}
    for name, odd in ODD.items():
        params = b'{"name":"pi_session_list","arguments":{"do":"echo","text":%b},"_meta":{"x":%b}}' % (odd, odd)
        child.send_raw(b'{"method":"tools/call","params":%b,"jsonrpc":"2.0","id":"%b"}\n' % (params, name.encode()))
        assert child.answer_to(name)["id"] == name
    assert child.call("pi_session_list", do="echo", text="still here") == {"echo": "still here"}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_cancellation_with_anything_in_it_is_obeyed(lasting: Child, odd: bytes) -> None:
    lasting.send(call("waits", do="wait"))
    members = rb'"requestId":"waits","reason":"cut \ud83d","x":%b,"_meta":{"x":%b}' % (odd, odd)
    lasting.send_raw(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{%b}}\n' % members)
    assert lasting.request("ping")["result"] == {}
    lasting.send(call("waits", do="echo", text="free again"))

    assert lasting.answer_to("waits")["result"]["structuredContent"] == {"echo": "free again"}


SILENT = [
    b"",
    b"  \t\r",
    b'{"jsonrpc":"2.0","method":"unknown"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":"x"}'.replace(b'"x"', b'{"progressToken":[]}'),
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
]
"""Lines that are no request."""


def test_what_wants_no_answer_gets_none(child: Child) -> None:
    for line in SILENT:
        child.send_raw(line + b"\n")
        assert child.request("ping")["result"] == {}, line


def test_crlf_leading_spaces_and_other_line_breaks_are_fine(child: Child) -> None:
    child.initialize()
    text = "a\u2028b\u2029c\x85d"
    call = {"name": "pi_session_list", "arguments": {"do": "echo", "text": text}}
    message = {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": call}
    child.send_raw(b"   " + json.dumps(message, ensure_ascii=False).encode() + b"\r\n")

    assert child.answer_to("x")["result"]["structuredContent"] == {"echo": text}


def test_a_request_in_single_bytes_is_one_request(child: Child) -> None:
    for byte in b'{"jsonrpc":"2.0","id":"slow","method":"ping"}\n':
        child.send_raw(bytes([byte]))

    assert child.answer_to("slow")["result"] == {}


def test_a_last_request_without_a_line_end_is_answered(ending: Child) -> None:
    ending.send_raw(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
    ending.close_stdin()

    assert ending.rest() == [{"jsonrpc": "2.0", "id": "last", "result": {}}]
    assert ending.wait() == 0


def line_of(size: int) -> bytes:
    """A valid ping of exactly that many bytes."""
    head, tail = b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"', b'"}}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


def test_a_line_of_the_largest_size_passes_and_one_byte_more_does_not(child: Child) -> None:
    child.send_raw(line_of(MAX_LINE_BYTES) + b"\n")
    assert child.receive() == {"jsonrpc": "2.0", "id": "big", "result": {}}

    child.send_raw(line_of(MAX_LINE_BYTES + 1) + b"\n")
    assert child.receive()["error"] == {"code": -32600, "message": "Message too large"}


def test_a_huge_line_costs_no_memory(child: Child) -> None:
    process = psutil.Process(child.process.pid)
    child.initialize()
    child.call("pi_session_list")
    before = process.memory_info().rss
    for _ in range(128):
        child.send_raw(b"x" * (1 << 20))
    child.send_raw(b"\n")

    assert child.receive()["error"]["message"] == "Message too large"
    assert process.memory_info().rss - before < 32 << 20
    assert child.request("ping")["result"] == {}


def test_garbage_of_all_kinds_never_ends_the_connection(child: Child) -> None:
    source = random.Random(7)
    for _ in range(300):
        child.send_raw(source.randbytes(source.randrange(1, 60)).replace(b"\n", b" ") + b"\n")

    child.send({"jsonrpc": "2.0", "id": "after", "method": "ping"})
    assert child.answer_to("after")["result"] == {}


# --- ids --------------------------------------------------------------------------------------------------------------


def call(message_id: object, **arguments: Any) -> dict[str, Any]:
    params = {"name": "pi_session_list", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}


@pytest.mark.parametrize(("first", "second"), [(7, 7), (7, "7"), ("7", 7), ("a", "a")])
def test_an_id_in_flight_is_not_taken_twice(lasting: Child, first: object, second: object) -> None:
    lasting.send(call(first, do="wait"))
    lasting.send(call(second, do="echo", text="second"))
    refused = lasting.receive()

    assert refused["error"] == {"code": -32600, "message": "Request id is already in flight"}
    assert (refused["id"], type(refused["id"])) == (second, type(second))

    lasting.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": first}})
    lasting.request("ping")
    lasting.send(call(second, do="echo", text="again"))
    assert lasting.answer_to(second)["result"]["structuredContent"] == {"echo": "again"}


def test_a_cancelled_request_gets_no_answer(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.send(call(50, do="wait"))
    child.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 50}})
    child.request("ping")
    child.close_stdin()

    assert child.rest() == []
    assert child.wait() == 0


def test_a_cancellation_while_loading_reaches_the_call_that_waits(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.send(call(50, do="echo", text="cancelled before it began"))
    child.send(call(51, do="wait"))
    child.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 51}})
    child.send(call(52, do="echo", text="after"))

    assert child.receive()["id"] == 50
    assert child.receive()["id"] == 52
    child.close_stdin()
    assert child.rest() == []


def test_as_many_requests_as_allowed_run_together_and_one_more_is_refused(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    for number in range(MAX_REQUESTS):
        child.send(call(f"n{number}", do="wait"))
    child.send(call("more", do="echo", text="x"))

    assert child.receive() == {
        "jsonrpc": "2.0",
        "id": "more",
        "error": {"code": -32600, "message": "Too many requests in flight"},
    }
    child.close_stdin()
    assert len(child.rest()) == MAX_REQUESTS
    assert child.wait() == 0


# --- what goes out ----------------------------------------------------------------------------------------------------


def test_text_that_utf8_cannot_carry_is_repaired_on_the_way_out(lasting: Child) -> None:

    assert lasting.call("pi_session_list", do="lone-surrogate") == {"text": "a\ufffdb", "pair": "😀"}


@pytest.mark.parametrize("deed", ["no-json", "raise"])
def test_a_result_that_cannot_be_sent_is_an_internal_error_of_that_request_only(start: Start, deed: str) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    child.send(call("bad", do=deed))

    assert child.receive() == {"jsonrpc": "2.0", "id": "bad", "error": {"code": -32603, "message": "Internal error"}}
    assert child.call("pi_session_list", do="echo", text="next") == {"echo": "next"}
    assert child.wait_for_diagnostic("internal_error")["code"] == "internal_error"
    assert b"canary" not in child.stderr


def test_no_number_leaves_that_json_does_not_know(lasting: Child) -> None:
    lasting.send(call("nan", do="not-a-number"))
    line = lasting.receive_line()

    assert not re.search(rb"NaN|Infinity", line)
    assert lasting.call("pi_session_list", do="echo", text="next") == {"echo": "next"}


def test_a_client_that_reads_late_gets_everything_whole(lasting: Child) -> None:
    for number in range(40):
        lasting.send(call(f"n{number}", do="big", size=500_000))
    answers = [lasting.receive() for _ in range(40)]

    assert sorted(answer["id"] for answer in answers) == sorted(f"n{number}" for number in range(40))
    assert all(len(answer["result"]["structuredContent"]["text"]) == 500_000 for answer in answers)


def test_input_goes_on_being_read_while_output_is_not(start: Start) -> None:
    child = start(command=TRIVIAL)
    child.initialize()
    for number in range(40):
        child.send(call(f"n{number}", do="big", size=500_000))
    for _ in range(2000):
        child.send_raw(b"x" * 500 + b"\n")  # more than a pipe holds
    child.close_stdin()

    assert child.wait() == 0


# --- from a file, to a file -------------------------------------------------------------------------------------------

PIPED = (
    b"\xff\xfe\nhello\n[]\n"
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"a","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pi_capabilities_get"}}\n'
)


def test_a_whole_conversation_from_a_file_is_answered_into_a_file(start: Start, tmp_path: Any) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(PIPED)
    with source.open("rb") as stdin, target.open("wb") as stdout:
        child = start(popen={"stdin": stdin.fileno(), "stdout": stdout.fileno()})
        assert child.wait() == 0

    answers = [json.loads(line) for line in target.read_bytes().splitlines()]
    assert [answer["id"] for answer in answers] == [None, None, None, 1, 2, 3]
    assert answers[-1]["result"]["structuredContent"]["ok"] is True


def test_the_null_device_on_both_sides_is_an_end_at_once(start: Start) -> None:
    child = start(popen={"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL})

    assert child.wait() == 0
    assert child.diagnostics == []


def test_a_conversation_over_one_socket_works(start: Start) -> None:
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = start(command=TRIVIAL, popen={"stdin": theirs.fileno(), "stdout": theirs.fileno()})
        theirs.close()
        ours.settimeout(30)
        with ours.makefile("rwb") as stream:
            stream.write(PIPED.split(b"[]\n")[1])
            stream.flush()
            answers = [json.loads(stream.readline()) for _ in range(3)]
            big = json.dumps(call("big", do="big", size=1_000_000)).encode()
            stream.write(big + b"\n")
            stream.flush()
            answer = json.loads(stream.readline())
        ours.shutdown(socket.SHUT_WR)

        assert [each["id"] for each in answers] == [1, 2, 3]
        assert len(answer["result"]["structuredContent"]["text"]) == 1_000_000
        assert child.wait() == 0


def test_a_terminal_on_both_sides_works(start: Start) -> None:
    ours, theirs = os.openpty()
    child = start(command=TRIVIAL, popen={"stdin": theirs, "stdout": theirs})
    os.close(theirs)
    os.write(ours, b'{"jsonrpc":"2.0","id":"tty","method":"ping"}\n\x04')
    seen = b""
    while b'"result":{}' not in seen:
        seen += os.read(ours, 65536)

    assert child.wait() == 0
    os.close(ours)
