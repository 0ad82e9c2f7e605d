"""Runs many rounds of start, prompt, close in one process, and prints what that process holds, as JSON lines.

Arguments: the configuration file, the number of rounds, and after how many of them to say it, separated by commas.
Having said it, it waits for a line, so that who reads it can look as well.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from pathlib import Path

import anyio
import psutil

from pi_session_mcp.config.load import load
from pi_session_mcp.keeper.orphans import adopt_orphans
from pi_session_mcp.server.assembly import assembled


def held() -> dict[str, int]:
    """What this process and its hosts hold now."""
    gc.collect()
    me = psutil.Process()
    hosts = [process for process in me.children(recursive=True) if "host.mjs" in " ".join(process.cmdline())]
    return {
        "descriptors": len(os.listdir("/dev/fd")),
        "tasks": len(asyncio.all_tasks()),
        "processes": len(me.children(recursive=True)),
        "memory": me.memory_info().rss,
        "host descriptors": sum(host.num_fds() for host in hosts),
    }


async def main(configuration: Path, rounds: int, told_after: set[int]) -> None:
    adopt_orphans()
    async with assembled(load(configuration), lambda _: None, lambda *_: None) as parts:
        registry = parts.registry
        for number in range(1, rounds + 1):
            session = await registry.start("project")
            _, turn = await registry.prompt(session.id, "hello")
            ended = await registry.wait_turn(session.id, turn.turn_id, timeout_s=50, on_progress=None)
            assert ended.state == "completed", ended.state
            await registry.close(session.id)
            if number in told_after:
                await anyio.sleep(0.2)  # what the kernel and Node do behind an answer is no leak
                sys.stdout.write(json.dumps(held()) + "\n")
                sys.stdout.flush()
                await anyio.to_thread.run_sync(sys.stdin.readline)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), {int(word) for word in sys.argv[3].split(",")})
