"""However few descriptors are free, each that was opened is given back, and the failure has a code."""

from __future__ import annotations

import fcntl
import os
import resource
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.setup.clients.base import ClientCommand, CommandFailed, CommandFailure, Conversation
from pi_session_mcp.setup.guardian import Guarded
from pi_session_mcp.setup.registration import Registration
from pi_session_mcp.setup.result import SetupCode, Stopped
from pi_session_mcp.setup.verify import Handshake, verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT = 128
FREE = range(16)
"""From none to more than both need."""


def is_open(descriptor: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def open_ones() -> set[int]:
    return {number for number in range(LIMIT) if is_open(number)}


@contextmanager
def only(free: int) -> Iterator[None]:
    """So many descriptors are free, and whatever is taken inside has been given back at the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
    try:
        fillers += [os.open(os.devnull, os.O_RDONLY) for _ in range(LIMIT - len(open_ones()))]
        for filler in fillers[:free]:
            os.close(filler)
        before = open_ones()
        yield
        assert open_ones() == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers[free:]:
            os.close(filler)


@pytest.mark.anyio
@pytest.mark.parametrize("conversation", [None, Conversation(b"x", bool)])
async def test_a_command_of_a_client_gives_every_descriptor_back(
    tmp_path: Path, conversation: Conversation | None
) -> None:
    command = ClientCommand((sys.executable, "-S", "-c", ""), tmp_path, {}, mutates=False, conversation=conversation)
    kinds: set[CommandFailure | None] = set()
    for free in FREE:
        with only(free):
            try:
                await Guarded(None).run(command)
            except CommandFailed as failed:
                kinds.add(failed.kind)
            else:
                kinds.add(None)
    assert kinds == {CommandFailure.NOT_STARTED, None}


@pytest.mark.anyio
async def test_a_verification_gives_every_descriptor_back(tmp_path: Path) -> None:
    server = Registration(sys.executable, ("-S", "-c", ""), {})
    for free in FREE:
        with only(free), pytest.raises(Stopped) as stopped:
            await verify(Handshake(registration=server, environ={}, directory=tmp_path, tools=frozenset()))
        assert stopped.value.code is SetupCode.MCP_FAILED
