"""Ask a program for its version: run it briefly, believe it only if it ends well."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.keeper import kept
from pi_session_mcp.runtime.environment import without_node_options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ANSWER_WITHIN_S: Final = 5.0
_ANSWER_LIMIT_BYTES: Final = 4096


async def node_version(program: Path, environ: Mapping[str, str]) -> str | None:
    """What `node --version` says, for example `v24.19.0`; `None` when it does not run or does not answer in time."""
    said = await ask((str(program), "--version"), environ)
    return None if said is None else said.strip()


async def ask(argv: tuple[str, ...], environ: Mapping[str, str], *, within_s: float = ANSWER_WITHIN_S) -> str | None:
    """What a program writes on its standard output, if it then ends with status 0; otherwise `None`.

    One that says more than 4 KiB has no version to tell and is ended. The program runs under a keeper, so nothing that
    it starts is left behind.
    """
    reading, writing = os.pipe()
    try:
        command = kept.Command(
            argv=argv,
            environment=without_node_options(environ),
            directory="/",
            grace_s=0.0,
            output=writing,
            dies_with_keeper=True,
        )
        try:
            keeper = kept.start(command)
        finally:
            os.close(writing)
        said = b""
        try:
            with anyio.move_on_after(within_s):
                said = await _read_to_end(reading)
                if len(said) < _ANSWER_LIMIT_BYTES:
                    await keeper.over()
        finally:
            keeper.end()
            with anyio.CancelScope(shield=True):
                await keeper.gone()
    finally:
        os.close(reading)
    return said.decode("utf-8", "replace") if keeper.status == 0 else None


async def _read_to_end(descriptor: int) -> bytes:
    said = b""
    while len(said) < _ANSWER_LIMIT_BYTES:
        await anyio.wait_readable(descriptor)
        chunk = os.read(descriptor, _ANSWER_LIMIT_BYTES)
        if not chunk:
            break
        said += chunk
    return said
