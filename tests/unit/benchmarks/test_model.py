"""The model that answers at once, as a program on a loopback port."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import model

if TYPE_CHECKING:
    from collections.abc import Iterator


def body(content: object) -> bytes:
    """A request whose last user message has this content."""
    messages = [{"role": "user", "content": "wait 900"}, {"role": "user", "content": content}]
    return json.dumps({"messages": [*messages, {"role": "tool", "content": "wait 800"}]}).encode()


@contextmanager
def connected() -> Iterator[socket.socket]:
    """A connection to a running model."""
    program = Path(model.__file__)
    with subprocess.Popen(
        [sys.executable, "-I", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            port = int(running.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                yield connection
            running.stdin.close()
            assert running.wait(20) == 0
        finally:
            running.kill()


def read_answers(connection: socket.socket, amount: int) -> bytes:
    """So many answers."""
    received = b""
    while len(received) < amount * len(model.ANSWER):
        received += connection.recv(65536)
    return received


@pytest.mark.parametrize(
    ("content", "seconds"), [("hello", 0), ("wait 50", 0.05), ([{"type": "text", "text": "wait 7 please"}], 0.007)]
)
def test_the_last_user_message_says_how_long_to_wait(content: object, seconds: float) -> None:
    assert model.wait_s(body(content)) == pytest.approx(seconds)


def test_a_request_without_user_messages_waits_for_nothing() -> None:
    assert model.wait_s(b'{"messages": []}') == 0


def test_requests_on_one_connection_are_answered_however_they_are_cut() -> None:
    sent = body("hello")
    request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(sent), sent)
    with connected() as connection:
        connection.sendall(request + request[:30])
        assert read_answers(connection, 1) == model.ANSWER

        connection.sendall(request[30:-5])
        connection.sendall(request[-5:])
        assert read_answers(connection, 1) == model.ANSWER


def test_the_model_ends_with_its_stdin() -> None:
    with connected() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\n")
