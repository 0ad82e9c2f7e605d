"""Runs one clean install by npm: its arguments, what it writes, and its end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.keeper.child import Command
from pi_session_mcp.keeper.pipes import ERRORS
from pi_session_mcp.keeper.running import running
from pi_session_mcp.platform.lines import LineSplitter
from pi_session_mcp.platform.paths import home_directory
from pi_session_mcp.runtime.node_environment import without_node_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

LOCK_DESCRIPTOR: Final = 64
"""The descriptor at which npm gets the lock of the installs. npm itself uses none that is so high."""
_LINE_LIMIT_BYTES: Final = 65_536
_FETCHED: Final = re.compile(rb"npm http fetch GET 2\d\d ")
_ERROR_CODE: Final = re.compile(rb"npm (?:error|ERR!) code (\w+)")


class NpmEnd(StrEnum):
    """How npm ended, as far as it matters to what the operator can do."""

    DONE = "done"
    NETWORK = "network"
    INTEGRITY = "integrity"
    DISK_FULL = "disk_full"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    NOT_STARTED = "not_started"


_ENDS: Final[dict[str, NpmEnd]] = {
    "EINTEGRITY": NpmEnd.INTEGRITY,
    "ENOSPC": NpmEnd.DISK_FULL,
    "EDQUOT": NpmEnd.DISK_FULL,
} | dict.fromkeys(
    (
        *("EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EPIPE", "ETIMEDOUT"),
        *("ENOTCACHED", "ERR_SOCKET_TIMEOUT", "E401", "E403", "E404", "E407", "E429", "E500", "E502", "E503", "E504"),
        *("CERT_HAS_EXPIRED", "DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "FETCH_ERROR"),
        *("UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "ERR_INVALID_URL"),
    ),
    NpmEnd.NETWORK,
)

# The operator's npm configuration decides about registries, proxies, certificates and the cache. Everything else that
# changes what is installed, or where, is set here. With `http`, npm reports each fetch, by which we measure progress.
_OPTIONS: Final = (
    "ci",
    *("--ignore-scripts", "--include=optional", "--omit=dev", "--install-strategy=hoisted", "--bin-links=false"),
    *("--global=false", "--workspaces=false", "--dry-run=false", "--package-lock=true", "--package-lock-only=false"),
    *("--legacy-peer-deps=false", "--strict-peer-deps=false", "--force=false"),
    *("--audit=false", "--fund=false", "--update-notifier=false", "--logs-max=0"),
    *("--progress=false", "--color=false", "--loglevel=http"),
    *("--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000", "--fetch-timeout=60000"),
)


@dataclass(frozen=True, slots=True)
class CleanInstall:
    """`npm ci` in a directory that holds a manifest and its lock file. `lock` is our descriptor of the held lock."""

    npm: tuple[str, ...]
    directory: Path
    lock: int
    within_s: float


async def run(install: CleanInstall, environ: Mapping[str, str], fetched: Callable[[int], None]) -> NpmEnd:
    """Run npm under a keeper. `fetched` is told how many answers npm got from the registry. Its output is not shown.

    When this returns or is cancelled, npm and everything that it started have ended.
    """
    listener = _Listener(fetched)
    try:
        async with running(_command(install, environ)) as npm:
            with anyio.move_on_after(install.within_s) as bound:
                async for chunk in npm.chunks(ERRORS):
                    listener.hear(chunk)
                await npm.over()
    except OSError:
        return NpmEnd.NOT_STARTED
    if bound.cancelled_caught:
        return NpmEnd.TIMED_OUT
    if npm.command_pid is None:
        return NpmEnd.NOT_STARTED
    return NpmEnd.DONE if npm.exit_code == 0 else _ENDS.get(listener.error_code, NpmEnd.FAILED)


class _Listener:
    """Counts fetches and keeps npm's error code. Everything else that npm writes is dropped."""

    def __init__(self, fetched: Callable[[int], None]) -> None:
        self._fetched = fetched
        self._count = 0
        self._lines = LineSplitter(_LINE_LIMIT_BYTES)
        self.error_code = ""

    def hear(self, chunk: bytes) -> None:
        """Take what npm has written since the last time."""
        for line in self._lines.feed(chunk):
            self._hear_line(line)

    def _hear_line(self, line: bytes) -> None:
        if _FETCHED.match(line):
            self._count += 1
            self._fetched(self._count)
        elif found := _ERROR_CODE.match(line):
            self.error_code = found[1].decode("ascii", "replace")


def _command(install: CleanInstall, environ: Mapping[str, str]) -> Command:
    return Command(
        # Without the prefix, npm would look for a project above the directory and read its settings.
        argv=(*install.npm, *_OPTIONS, f"--prefix={install.directory}"),
        environment=_environment(environ),
        directory=str(install.directory),
        streams=(ERRORS,),
        # npm holds the lock, too. If it outlives us and its keeper, its directory is still not removed.
        descriptors={LOCK_DESCRIPTOR: install.lock},
        dies_with_keeper=True,
    )


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    ours = without_node_options(environ)
    home = home_directory(environ)
    if home is not None:
        ours["HOME"] = str(home)
    return ours
