"""A real Pi host, driven frame by frame, without the server's own client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from pi_session_mcp.host.host_environment import host_environment
from pi_session_mcp.host.process import SCRIPT
from pi_session_mcp.runtime.locate import locate
from pi_session_mcp.runtime.overrides import NothingAsked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from pi_session_mcp.runtime.locate import Runtime

WAIT_S = 30.0
"""Long enough for any machine; a test that waits this long has failed."""
READ_ONLY = ("read", "grep", "find", "ls")
CODING = ("read", "bash", "edit", "write", "grep", "find", "ls")

Frame = dict[str, Any]

_LAUNCHER = """
import os, sys
channel = int(sys.argv[1])
os.dup2(channel, 3)
if channel != 3:
    os.close(channel)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Refused(Exception):  # noqa: N818 - an expected answer
    """The host answered with a code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def installed_runtime() -> Runtime:
    """The Node and the SDK that `runtime install` installed."""
    return locate(NothingAsked(), {"PATH": os.environ["PATH"]}, SCRIPT.parent)


class RawHost:
    """One host process and its channel, from `with` to the end of its block."""

    def __init__(self, runtime: Runtime, agent_directory: Path, home: Path, **variables: str) -> None:
        self.runtime = runtime
        self.agent_directory = agent_directory
        self.events: list[Frame] = []
        self._answers: dict[int, Frame] = {}
        self._last_id = 0
        self._last_session = 0
        self._held: bytearray | None = None
        # No `rg` and no `fd` on the path but the installed one.
        environ = {"PATH": _path_without("rg", "fd", "fdfind"), "HOME": str(home), **variables}
        self._environment = host_environment(environ, agent_directory=agent_directory, tools=runtime.tools)

    def __enter__(self) -> Self:
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(WAIT_S)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(theirs.fileno()), str(self.runtime.node), str(SCRIPT)],
            pass_fds=(theirs.fileno(),),
            env=self._environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self._lines = self._channel.makefile("rb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_channel()
        try:
            self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def close_channel(self) -> None:
        """What the host sees when its server has died."""
        self._lines.close()
        self._channel.close()

    def greet(self, *, bundled: bool = False, python: str | None = sys.executable) -> Frame:
        """The first exchange; with the SDK's bundle as for a shared host, or without it as for one with extensions.

        Without `python` the host's `bash` is Pi's own.
        """
        cache = self.runtime.compile_cache
        bundle = self.runtime.sdk_bundle if bundled else None
        members = {
            "sdk": str(self.runtime.sdk_entry),
            "bundle": bundle and str(bundle),
            "compileCache": cache and str(cache),
            "python": python,
        }
        return self.ask("hello", protocol=1, **members)

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._held is None:
            self._channel.sendall(data)
        else:
            self._held += data

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is sent inside the block arrives at once, so that the host sees all of it before it does any."""
        self._held = bytearray()
        yield
        held, self._held = self._held, None
        self._channel.sendall(held)

    def send(self, op: str, **members: object) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        self.send_raw(json.dumps({"id": self._last_id, "op": op, **members}).encode() + b"\n")
        return self._last_id

    def answer(self, request: int) -> Frame:
        """The result of a request. Raises `Refused`."""
        while request not in self._answers:
            self._receive()
        answer = self._answers.pop(request)
        if not answer["ok"]:
            raise Refused(answer["code"])
        return dict(answer["result"])

    def ask(self, op: str, **members: object) -> Frame:
        """Send a request and return its result. Raises `Refused`."""
        return self.answer(self.send(op, **members))

    def event(self, name: str, **members: object) -> Frame:
        """The first event, also of those that have arrived, with this name and these members."""
        wanted = {"event": name, **members}
        while True:
            for event in self.events:
                if wanted.items() <= event.items():
                    return event
            self._receive()

    def next_frame(self) -> Frame | None:
        """The next frame whatever it is, `None` at the end of the channel."""
        line = self._lines.readline()
        return dict(json.loads(line)) if line else None

    def _receive(self) -> None:
        frame = self.next_frame()
        assert frame is not None, "the host has gone"
        if "re" in frame:
            assert frame["re"] not in self._answers, "two answers to one request"
            self._answers[frame["re"]] = frame
        else:
            self.events.append(frame)

    def session(self, cwd: Path, **options: Any) -> RawSession:
        """A session that is not loaded yet."""
        self._last_session += 1
        return RawSession(self, self._last_session, cwd, **options)


class RawSession:
    """One session of a raw host."""

    def __init__(
        self,
        host: RawHost,
        key: int,
        cwd: Path,
        *,
        file_access: str = "workspace",
        model: str = "scripted-1",
        provider: str = "scripted",
        thinking: str = "off",
        tools: Sequence[str] = READ_ONLY,
        entries: Sequence[Path] = (),
    ) -> None:
        self.host = host
        self.key = key
        self.cwd = cwd
        self.provider = provider
        self.model = model
        self.tools = tools
        self._turn = 0
        self._load = {"cwd": str(cwd), "fileAccess": file_access, "entries": [str(entry) for entry in entries]}
        self.selection = {"provider": provider, "model": model, "thinkingLevel": thinking}

    def ask(self, op: str, **members: object) -> Frame:
        """A request about this session. Raises `Refused`."""
        return self.host.ask(op, session=self.key, **members)

    def send(self, op: str, **members: object) -> int:
        """Send a request about this session and return its id."""
        return self.host.send(op, session=self.key, **members)

    def load(self) -> Frame:
        """The first step."""
        return self.ask("load", **self._load)

    def check(self, step: str) -> bool:
        """The answer to one check."""
        return bool(self.ask("check", steps=[step], selection=self.selection)["found"])

    def open(self) -> Frame:
        """The last step, but for a session with extensions."""
        return self.ask("open", selection=self.selection, tools=list(self.tools))

    def opened(self) -> Self:
        """Loaded and opened."""
        self.load()
        self.open()
        return self

    def start(self, text: str) -> int:
        """Prompt and return the turn's number once it has started."""
        self._turn += 1
        assert self.ask("prompt", turn=self._turn, text=text) == {"preflight": "started"}
        return self._turn

    def settled(self, turn: int) -> Frame:
        """The end of a turn."""
        return self.host.event("settled", session=self.key, turn=turn)

    def run(self, text: str) -> Frame:
        """Prompt and wait for the end of the turn."""
        return self.settled(self.start(text))

    def say(self, text: str) -> str:
        """Prompt and return the answer of a turn that ended well."""
        outcome = self.run(text)
        assert (outcome["stopReason"], outcome["aborted"]) == ("stop", False), outcome
        return str(outcome["text"])


def _path_without(*programs: str) -> str:
    """The search path without the directories that hold one of the programs."""
    entries = [entry for entry in os.environ["PATH"].split(":") if entry]
    return ":".join(e for e in entries if not any(os.path.exists(os.path.join(e, name)) for name in programs))
