"""A host that misbehaves in one chosen way; run as a program in the place of Node.

Its first argument is a behaviour; the host's script, which it is also given, is ignored. Everything that is not the
chosen misbehaviour is as in the protocol, so that each test shows one thing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Channel:
    """Descriptor 3, blocking."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=3)
        self._lines = self._socket.makefile("rb")

    def receive(self) -> dict[str, object] | None:
        line = self._lines.readline()
        return json.loads(line) if line else None

    def send(self, frame: object) -> None:
        self.send_raw(json.dumps(frame).encode() + b"\n")

    def send_raw(self, line: bytes) -> None:
        self._socket.sendall(line)

    def answer(self, request: dict[str, object], result: dict[str, object]) -> None:
        self.send({"re": request["id"], "ok": True, "result": result})


def greeting(behaviour: str) -> dict[str, object]:
    return {
        "protocol": 2 if behaviour == "another protocol" else 1,
        "node": "v20.11.0" if behaviour == "an old node" else "v24.19.0",
        "sdk": {"an old sdk": "1.5.1", "a new sdk": "1.7.0"}.get(behaviour, "1.6.0"),
        "missing": ["ModelRuntime"] if behaviour == "an export is missing" else [],
    }


def stuck() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1000)


CALL = {"session": 1, "tool": "t", "arguments": "{}", "given": "{}"}
CALLS = 200


def flood(channel: Channel, frame: Callable[[int], object]) -> None:
    """Frames without end, whatever signal comes."""
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    number = 0
    while True:
        channel.send_raw(b"".join(json.dumps(frame(number := number + 1)).encode() + b"\n" for _ in range(1000)))


def obey(behaviour: str, channel: Channel, request: dict[str, object]) -> None:  # noqa: C901 - a list, not a branch
    """Answer one request after the greeting, or misbehave."""
    match behaviour:
        case "garbage":
            channel.send_raw(b"this is no frame\n")
        case "not utf-8":
            channel.send_raw(b'{"re":1,"ok":true,"result":{"x":"\xff"}}\n')
        case "an unknown field":
            channel.send({"re": request["id"], "ok": True, "result": {}, "more": 1})
        case "an answer nobody asked for":
            channel.send({"re": 999, "ok": True, "result": {}})
        case "two answers":
            channel.answer(request, {})
            channel.answer(request, {})
        case "an event of no session":
            channel.send({"event": "activity", "session": 7, "turn": 1})
        case "a result of another kind":
            channel.answer(request, {"path": "/canary"})
        case "an endless line":
            while True:
                channel.send_raw(b"x" * 65_536)
        case "a flood of events":
            flood(channel, lambda _: {"event": "activity", "session": 1, "turn": 1})
        case "a flood of calls":
            flood(channel, lambda number: {**CALL, "call": number})
        case "calls whose answers it does not read":
            for number in range(1, CALLS + 1):
                channel.send({**CALL, "call": number})
            stuck()
        case "stuck":
            stuck()
        case "exits":
            sys.exit(0)
        case _:
            channel.answer(request, {})


def main(behaviour: str) -> None:
    channel = Channel()
    if behaviour == "never greets":
        stuck()
    if behaviour == "exits at once":
        sys.exit(3)
    if behaviour == "prints":
        os.write(1, b"printed\n")
        os.write(2, b"canary on stderr\n")
        subprocess.run(["echo", "by a child"], check=True)
    while (request := channel.receive()) is not None:
        if request["op"] == "hello":
            channel.answer(request, greeting(behaviour))
        else:
            obey(behaviour, channel, request)


if __name__ == "__main__":
    main(sys.argv[1])
