"""`python -m benchmarks`: measure an MCP server command from outside, alone or against another one."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import costs, extensions, loading, sessions
from benchmarks.budgets import judge_all
from benchmarks.documents import require_marks, say, write_between
from benchmarks.parts import Part, as_text, summary
from benchmarks.plot import bars, picture
from benchmarks.report import as_json
from benchmarks.report import as_text as tables_as_text
from benchmarks.rounds import Amounts
from benchmarks.run import OURS, REFERENCE, Benchmark, Plan, installed_runtime, subject
from pi_session_mcp.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.run import Subject
    from pi_session_mcp.runtime.locate import Runtime

THOROUGH: Final = Plan(
    7, 5, 3, Amounts(turns=60, reads=1000, idle_s=10), begin_within_s=150, over_within_s=200, idle_within_s=90
)
QUICK: Final = Plan(
    3, 2, 1, Amounts(turns=20, reads=300, idle_s=3), begin_within_s=30, over_within_s=120, idle_within_s=60
)
NOTHING: Final = "nothing"
TABLES: Final = "tables"
BRIDGE: Final = "bridge"
PARTS: Final = (TABLES, sessions.MARK, costs.MARK, loading.MARK, extensions.MARK, BRIDGE)
JSON_VERSION: Final = 2
_QUICK_CALLS: Final = 15
_QUICK_LOADS: Final = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print tables, write JSON and a plot. 0 if everything could be measured, whatever it was; 1 if not."""
    options = _options().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.document is not None:
        require_marks(options.document, options.part or PARTS)
    try:
        runtime = installed_runtime()
    except Refusal:
        say("There is no usable Node or Pi SDK: run `pi-session-mcp runtime install`.")
        return 1
    asked = (options.server, "server"), (options.against, "other")
    subjects = [subject(words, name, runtime) for words, name in asked if words != NOTHING]
    parts = []
    for name in options.part or PARTS:
        parts.append(_part(name, subjects, runtime, quick=options.quick))
        print(as_text(parts[-1]), flush=True)
    print(summary(parts), end="")
    _deliver(parts, options)
    return 1 if any(part.failures for part in parts) else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--server", default=OURS, metavar="COMMAND", help=f"what is measured; `{OURS}` is the one of this environment"
    )
    parser.add_argument(
        "--against",
        default=REFERENCE,
        metavar="COMMAND",
        help=f"what it is compared with: `{REFERENCE}` (a Node server that embeds the SDK), `{NOTHING}`, or a command",
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given again")
    parser.add_argument("--quick", action="store_true", help="sooner, and less exact")
    parser.add_argument(
        "--json", type=Path, default=Path("build/benchmark.json"), metavar="FILE", help="where the values go"
    )
    parser.add_argument(
        "--plot", type=Path, default=Path("build/benchmark.svg"), metavar="FILE", help="where the picture goes"
    )
    parser.add_argument(
        "--document",
        type=Path,
        metavar="FILE",
        help="put the texts between the marks of this document, and the picture beside it, too",
    )
    return parser


def _part(name: str, subjects: Sequence[Subject], runtime: Runtime, *, quick: bool) -> Part:
    if name == TABLES:
        return _tables(Benchmark(QUICK if quick else THOROUGH, subjects, runtime, say))
    if name == sessions.MARK:
        return sessions.part(subjects, sessions.QUICK if quick else sessions.THOROUGH)
    if name == costs.MARK:
        return costs.part(subjects)
    say(f"measuring: {name}")
    if name == loading.MARK:
        return loading.part(runtime, _QUICK_LOADS if quick else loading.ROUNDS)
    if name == extensions.MARK:
        return extensions.part()
    from benchmarks import bridge  # with it comes the MCP SDK, whose files the others would share

    return bridge.part(_QUICK_CALLS if quick else bridge.ROUNDS)


def _tables(benchmark: Benchmark) -> Part:
    measured = benchmark.run()
    verdicts = judge_all(measured.ours, measured.theirs)
    return Part(TABLES, "Benchmark", tables_as_text(measured), verdicts, as_json(measured), measured.failures)


def _deliver(parts: Sequence[Part], options: argparse.Namespace) -> None:
    """Write the files."""
    values = {"version": JSON_VERSION, **{part.mark: dict(part.values) for part in parts}}
    _write(options.json, json.dumps(values, indent=2, ensure_ascii=False).encode() + b"\n")
    if options.document is not None:
        for part in parts:
            write_between(options.document, part.mark, part.in_document())
    plots = [options.plot] if options.document is None else [options.plot, options.document.with_suffix(".svg")]
    for part in parts:
        if part.mark == TABLES:
            _plot(part, plots)


def _plot(part: Part, paths: Sequence[Path]) -> None:
    try:
        drawn = picture(bars(part.verdicts), "Measured, as a share of what the budget allows")
    except ImportError:
        say("There is no plot, because matplotlib is missing: `make bench` installs it.")
        return
    for path in paths:
        _write(path, drawn)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    say(f"Written: {path}")


if __name__ == "__main__":
    sys.exit(main())
