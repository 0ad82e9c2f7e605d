"""However few descriptors are free, whoever owns a process gives back every descriptor that it took."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.bridge.process import Launch as ServerLaunch
from pi_session_mcp.bridge.process import running_server
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.demo.server import running_server as demonstrated_server
from pi_session_mcp.demo.world import throw_away_world
from pi_session_mcp.host import process as host_process
from pi_session_mcp.host.host import Host
from pi_session_mcp.platform import brief_run
from pi_session_mcp.runtime import npm
from pi_session_mcp.runtime.probe import ask
from pi_session_mcp.setup.clients.base import ClientCommand, CommandFailed, CommandFailure, Conversation
from pi_session_mcp.setup.guardian import Guarded
from pi_session_mcp.setup.registration import Registration
from pi_session_mcp.setup.result import Stopped
from pi_session_mcp.setup.verify import Handshake, verify
from tests.support.descriptors import few_descriptors, opened
from tests.support.trees import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.anyio

FREE = range(35)
"""A process with an event loop has 6 or more of its own, so these are the limits from 8 to 40."""
BRIEF = ("/bin/echo", "v1")


async def host(directory: Path) -> bool:
    reported: list[object] = []
    launch = host_process.Launch(Path("/bin/cat"), directory, None, None, {})
    await Host(lambda: launch, Deadlines(host_start_s=WAIT_S), reported.append, lambda *_: None).run()
    return "reason='exited'" in repr(reported)


async def external_server(directory: Path) -> bool:
    try:
        async with running_server(ServerLaunch(("/bin/cat",), {}, str(directory))) as server:
            await server.write(b"x\n")
            return await server.read() == b"x\n"
    except OSError:
        return False


async def guardian(directory: Path, conversation: Conversation | None = None) -> bool:
    command = ClientCommand(BRIEF, directory, {}, mutates=False, conversation=conversation)
    try:
        return (await Guarded(None).run(command)).stdout == b"v1\n"
    except CommandFailed as failed:
        if failed.kind is not CommandFailure.NOT_STARTED:
            raise
        return False


async def conversing_guardian(directory: Path) -> bool:
    return await guardian(directory, Conversation(b"x", bool))


async def verification(directory: Path) -> bool:
    told: list[object] = []
    handshake = Handshake(
        registration=Registration(*BRIEF[:1], BRIEF[1:], {}),
        environ={},
        directory=directory,
        tools=frozenset(),
        on_step=lambda _step, running: told.append(running),
    )
    with pytest.raises(Stopped):
        await verify(handshake)
    return told[-1] is not None


async def install(directory: Path) -> bool:
    asked = npm.CleanInstall(("/bin/true",), directory, sys.stderr.fileno(), WAIT_S)
    return await npm.run(asked, os.environ, lambda _count: None) is npm.NpmEnd.DONE


async def probe(_directory: Path) -> bool:
    return await ask(BRIEF, {}) == "v1\n"


async def doctors_program(_directory: Path) -> bool:
    return brief_run.run(BRIEF, {}, within_s=WAIT_S, limit_bytes=100).text == b"v1\n"


OWNERS = (host, external_server, guardian, conversing_guardian, verification, install, probe, doctors_program)


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
async def test_an_owner_gives_every_descriptor_back(owner: Callable[[Path], Awaitable[bool]], tmp_path: Path) -> None:
    assert await owner(tmp_path)
    worked = []
    for free in FREE:
        before = opened()
        with few_descriptors(free):
            worked.append(await owner(tmp_path))
        assert opened() == before
    assert worked == sorted(worked)
    assert set(worked) == {False, True}


async def test_the_demonstration_gives_every_descriptor_of_its_server_back() -> None:
    with throw_away_world() as world:
        for free in range(12):
            before = opened()
            started = False
            with few_descriptors(free):
                try:
                    async with demonstrated_server(world):
                        started = True
                except OSError:
                    pass
            assert opened() == before
        assert started
