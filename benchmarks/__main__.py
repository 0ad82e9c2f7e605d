"""`python -m benchmarks`: measure an MCP server command from outside, alone or against another one."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.report import as_json, as_text, replaced
from benchmarks.rounds import Amounts
from benchmarks.run import OURS, REFERENCE, Benchmark, Plan, installed_runtime, subject
from pi_session_mcp.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

THOROUGH: Final = Plan(7, 5, 3, Amounts(turns=60, reads=1000, idle_s=10), begin_within_s=170, over_within_s=220)
QUICK: Final = Plan(3, 2, 1, Amounts(turns=20, reads=300, idle_s=3), begin_within_s=30, over_within_s=48)
NOTHING: Final = "nothing"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print tables, write JSON. 0 if everything could be measured, whatever it was; 1 if not."""
    options = _options().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        runtime = installed_runtime()
    except Refusal:
        _say("There is no usable Node or Pi SDK: run `pi-session-mcp runtime install`.")
        return 1
    asked = (options.server, "server"), (options.against, "other")
    subjects = [subject(words, name, runtime) for words, name in asked if words != NOTHING]
    measured = Benchmark(QUICK if options.quick else THOROUGH, subjects, runtime, _say).run()
    print(as_text(measured), end="")
    if options.document is not None:
        options.document.write_text(replaced(options.document.read_text("utf-8"), as_text(measured)), "utf-8")
    _write(options.json, json.dumps(as_json(measured), indent=2, ensure_ascii=False) + "\n")
    return 1 if measured.failures else 0


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
    parser.add_argument("--quick", action="store_true", help="within a minute, and less exact")
    parser.add_argument(
        "--json", type=Path, default=Path("build/benchmark.json"), metavar="FILE", help="where the values go"
    )
    parser.add_argument(
        "--document", type=Path, metavar="FILE", help="put the tables between the marks of this document, too"
    )
    return parser


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    _say(f"{path} holds the value of each round.")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
