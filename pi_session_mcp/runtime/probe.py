"""Asks a program for its version. The answer counts only if the program ends with status 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.keeper.child import Command
from pi_session_mcp.keeper.pipes import OUTPUT
from pi_session_mcp.keeper.running import run
from pi_session_mcp.runtime.node_environment import without_node_options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ANSWER_LIMIT_BYTES: Final = 4096


async def node_version(program: Path, environ: Mapping[str, str]) -> str | None:
    """What `node --version` writes, such as `v24.19.0`. `None` when it does not run or answer in time."""
    said = await ask((str(program), "--version"), environ)
    return None if said is None else said.strip()


async def ask(
    argv: tuple[str, ...], environ: Mapping[str, str], *, within_s: float = DEADLINES.version_s
) -> str | None:
    """What a program writes on its standard output. `None` unless it ends with status 0.

    A program that writes more than 4 KiB is ended, since that is no version. It runs under a keeper, so nothing that it
    starts is left.
    """
    command = Command(
        argv=argv,
        environment=without_node_options(environ),
        directory="/",
        streams=(OUTPUT,),
        dies_with_keeper=True,
    )
    ended = await run(command, within_s=within_s, max_bytes=_ANSWER_LIMIT_BYTES)
    return ended.output.decode("utf-8", "replace") if ended.well else None
