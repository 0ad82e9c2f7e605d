"""`python -m benchmarks.loading`: what a server and a host are made of, by what they load.

Each step is a program of its own that loads so much and then waits, while its memory is looked at. CPU time is that of
the whole program, the least of some rounds: what a program needs, not how often it was disturbed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final, NamedTuple

import psutil

from benchmarks import tree
from benchmarks.parts import Part
from benchmarks.report import number, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.growth import Memory
    from pi_session_mcp.runtime.locate import Runtime

MARK: Final = "loading"
TITLE: Final = "What is loaded"
ROUNDS: Final = 5
_STEPS: Final = (
    ("Python alone", "sys"),
    ("what answers the handshake", "pi_session_mcp.server.main"),
    ("pydantic and anyio", "pydantic, anyio, anyio._backends._asyncio"),
    ("the configuration, with pydantic", "pi_session_mcp.config.load"),
    ("everything that makes calls", "pi_session_mcp.server.assembly, pi_session_mcp.server.serving"),
    ("the types of the MCP SDK, which judge unusual messages", "mcp_types.methods"),
    ("the MCP SDK, whose client speaks to granted servers", "mcp.client"),
)
_PYTHON_WAITS: Final = "import os; os.write(1, b'.'); os.read(0, 1)"
_NODE_WAITS: Final = "process.stdin.on('close', () => process.exit(0)).resume(); process.stdout.write('.');"
_NODE_CACHES: Final = "(await import('node:module')).enableCompileCache(process.argv[1]);"


class Step(NamedTuple):
    """A program that loads something, says so, and waits for the end of its input."""

    what: str
    command: tuple[str, ...]


class Seen(NamedTuple):
    """What a program took: CPU time in milliseconds, and its memory when everything was loaded."""

    cpu_ms: float
    memory: Memory


def part(runtime: Runtime, rounds: int) -> Part:
    """Run every program so many times, after once for what is cached."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as cache:
        programs = steps(runtime, cache)
        for program in programs:
            run(program)
        seen = {program.what: [run(program) for _ in range(rounds)] for program in programs}
    rows = [_row(what, runs) for what, runs in seen.items()]
    text = table([["Loaded", "CPU, ms", "RSS, MiB", "PSS, MiB"], *rows])
    values = {
        what: [{"cpuMs": one.cpu_ms, "pss": one.memory.pss, "rss": one.memory.rss} for one in runs]
        for what, runs in seen.items()
    }
    return Part(MARK, TITLE, text, values=values)


def _row(what: str, runs: Sequence[Seen]) -> list[str]:
    least = [min(one.cpu_ms for one in runs), min(one.memory.rss for one in runs), min(one.memory.pss for one in runs)]
    return [what, *(number(value) for value in least)]


def steps(runtime: Runtime, cache: str) -> list[Step]:
    """The programs: Python with more and more of the server, then Node without and with the SDK."""
    python = [Step(what, (sys.executable, "-c", f"import {names}; {_PYTHON_WAITS}")) for what, names in _STEPS]
    entry, bundle = runtime.sdk_entry.as_uri(), runtime.sdk_bundle and runtime.sdk_bundle.as_uri()
    small = ("--max-semi-space-size=1",)
    sdk: list[tuple[str, str, tuple[str, ...]]] = [
        ("Node alone", "", ()),
        ("Node and the Pi SDK as published", _imported(entry), ()),
        ("… with a compile cache and a small young generation, as a host of one session", _cached(entry), small),
    ]
    if bundle:
        sdk += [
            ("Node and the Pi SDK in one bundle", _imported(bundle), ()),
            ("… with a compile cache, as a host of many sessions", _cached(bundle), ()),
        ]
    node = str(runtime.node)
    return python + [
        Step(what, (node, *flags, "--input-type=module", "-e", loads + _NODE_WAITS, "--", cache))
        for what, loads, flags in sdk
    ]


def _cached(url: str) -> str:
    return _NODE_CACHES + _imported(url)


def _imported(url: str) -> str:
    return f"await import({url!r});"


def run(step: Step) -> Seen:
    """Run one program to its end."""
    with subprocess.Popen(step.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdout.read(1)
        memory = tree.memory_of(psutil.Process(running.pid))
        running.stdin.close()
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    return Seen((used.ru_utime + used.ru_stime) * 1000, memory)


if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["--part", MARK, *sys.argv[1:]]))
