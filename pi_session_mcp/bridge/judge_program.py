"""The judge: applies the JSON Schemas of external tools, in a process that can be ended.

A program of its own, run as `python -I -S judge_program.py DIRECTORY …`. From the directories it imports this package
and `jsonschema`. `bridge/judge.py` is its other side.

It reads one question a line and writes one answer a line, both JSON:

- question: `[what, schema, values]`, where `what` is `usable` or `keeps`, and schema and values are JSON texts
- answer: a list with one word for the schema (`usable`) or for each value (`keeps`): `true`, `false`, or `null` for
  something that cannot be judged

A judgement that takes more than `CPU_S` seconds of processor time ends this process: the kernel sends `SIGPROF`, also
while `re` is at work. So does a judgement that needs more memory than `MEMORY_BYTES` (on Linux, which counts it). The
end of its input ends it as well.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from contextlib import suppress

CPU_S = 2.0
MEMORY_BYTES = 512 * 1024 * 1024
MAX_KEPT = 256
"""How many schemas stay compiled: more than two for each tool that a profile can grant."""


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _bound(resource.RLIMIT_CORE, 0)
    _bound(resource.RLIMIT_AS, MEMORY_BYTES)
    sys.path.extend(sys.argv[1:])
    from pi_session_mcp.bridge.schema import Arguments, is_usable_schema

    Arguments({})  # imports what it needs, while Python may still write bytecode files
    _bound(resource.RLIMIT_FSIZE, 0)
    compiled: dict[str, Arguments] = {}

    def answer(what: str, schema: str, values: list[str]) -> list[bool | None]:
        if what == "usable":
            return [is_usable_schema(json.loads(schema))]
        if schema not in compiled:
            if len(compiled) >= MAX_KEPT:
                compiled.clear()
            compiled[schema] = Arguments(json.loads(schema))
        return [_judged(compiled[schema], value) for value in values]

    def _judged(judge: Arguments, value: str) -> bool | None:
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):  # a number of more digits than Python reads
            return None
        return judge.judge(parsed)

    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        said = answer(*json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
        sys.stdout.buffer.flush()


def _bound(limit: int, value: int) -> None:
    with suppress(OSError, ValueError):  # macOS refuses to bound the address space
        resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    main()
