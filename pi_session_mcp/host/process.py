"""The process of one Pi host: Node under a keeper, its channel, and the pipes that catch what it prints."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.host.protocol import CHANNEL_FD, HELLO_ID, Hello, encode_request
from pi_session_mcp.keeper import child
from pi_session_mcp.keeper.child import Command
from pi_session_mcp.keeper.pipes import ERRORS, OUTPUT
from pi_session_mcp.platform.text import utf8_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pi_session_mcp.keeper.child import Child

SCRIPT: Final = Path(__file__).with_name("js") / "host.mjs"
_SMALL_YOUNG_GENERATION: Final = ("--max-semi-space-size=1",)
"""For a host with one session, which loads the SDK as published: 146 instead of 198 MiB after 60 turns (Node 24).

A host with many sessions keeps V8's own size. With fifty sessions that costs 27 MiB, and simultaneous turns take a
fifth less time.
"""
_OWN_REST: Final = ("--no-memory-reducer",)
"""`js/rest.mjs` gives memory back instead. V8's own way wakes a host dozens of times, seconds after its last turn."""
_DIRECTORY: Final = "/"
"""The directory of a host: not the client's project."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What it takes to start a host. `sdk`, `bundle` and `compile_cache` go to it over the channel, not as arguments.

    A host that runs no extensions may take `bundle` instead of `sdk`; see `protocol.Hello`.
    """

    node: Path
    sdk: Path
    bundle: Path | None
    compile_cache: Path | None
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HostProcess:
    """A started host, which was greeted. Who has it owns the child (`running.owned`) and closes `channel`."""

    child: Child
    channel: socket.socket

    async def drain(self, count: Callable[[int, int], None]) -> None:
        """Read what the host and its children print, count it as (bytes, writes), and drop it, until all have ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain, OUTPUT, count)
            tasks.start_soon(self._drain, ERRORS, lambda _bytes, _writes: None)

    async def _drain(self, stream: int, count: Callable[[int, int], None]) -> None:
        async for chunk in self.child.chunks(stream):
            count(len(chunk), 1)


def arguments_of(launch: Launch) -> tuple[str, ...]:
    """The arguments of `node` before the script."""
    return _OWN_REST if launch.bundle is not None else (*_OWN_REST, *_SMALL_YOUNG_GENERATION)


def start(launch: Launch, grace_s: float = DEADLINES.host_grace_s) -> HostProcess:
    """Start a host and greet it: request `HELLO_ID` is on its way. Raises `OSError`; nothing is left open then."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        ours.sendall(_greeting(launch))  # a few paths, which fit into the buffer of a new socket
        ours.setblocking(False)  # noqa: FBT003 - the library takes it by position only
        command = Command(
            argv=(str(launch.node), *arguments_of(launch), str(SCRIPT)),
            environment=launch.environment,
            directory=_DIRECTORY,
            grace_s=grace_s,
            streams=(OUTPUT, ERRORS),
            descriptors={CHANNEL_FD: theirs.fileno()},
        )
        return HostProcess(child.start(command), ours)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()


def _greeting(launch: Launch) -> bytes:
    sdk, bundle, cache = (
        None if path is None else utf8_text(path) for path in (launch.sdk, launch.bundle, launch.compile_cache)
    )
    hello = Hello(sdk=sdk or "", bundle=bundle, compileCache=cache, python=utf8_text(sys.executable))
    return encode_request(HELLO_ID, hello)
