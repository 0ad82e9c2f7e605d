"""`python -m acceptance [TARGET…]`: setup with real MCP clients, in throw-away homes.

Exits with 0 when every check passed, 1 when one failed, 2 when the harness could not do its work, and 130 or 143 when
it was interrupted; its homes are gone in each case.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from platformdirs import user_cache_path

from acceptance import installations, programs
from acceptance.errors import HarnessError, Interrupted
from acceptance.homes import CONFIGURATIONS, home
from acceptance.live.runs import live_runs
from acceptance.record import Run, as_text, record
from acceptance.scenario import Scenario
from pi_session_mcp.errors import Refusal
from pi_session_mcp.platform.processes import become_subreaper
from pi_session_mcp.runtime.locate import Runtime, locate
from pi_session_mcp.runtime.overrides import NothingAsked
from pi_session_mcp.setup.targets import ALL_TARGETS, Target, TargetInvalid, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractContextManager
    from types import FrameType

    from acceptance.installations import Installation
    from acceptance.programs import Program
    from acceptance.scenario import Check

PASSED: Final = 0
FAILED: Final = 1
HARNESS: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, write the record, and say the count."""
    options = _options().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return _accept(options)
    except Interrupted as interrupted:
        _say("Interrupted; the homes are gone.")
        return interrupted.status
    except HarnessError as error:
        _say(f"The harness could not do its work: {error}")
        return HARNESS
    except Exception as error:  # noqa: BLE001 - a defect of the harness is no verdict on the product
        _say(f"The harness has a defect: {error!r}")
        return HARNESS


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # the cleanup is bounded, and must come to its end
    raise Interrupted(number)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m acceptance", description="Setup with real MCP clients.")
    valid = ", ".join(target.short for target in ALL_TARGETS)
    parser.add_argument("targets", nargs="*", type=_target, metavar="TARGET", help=f"all when none is named: {valid}")
    parser.add_argument(
        "--only",
        choices=("setup", "live", "first"),
        help="only the operations of setup, only live work, or of that only the way from an empty home to a delegation",
    )
    parser.add_argument("--quick", action="store_true", help="without two at once and without interruptions")
    parser.add_argument("--configuration", choices=CONFIGURATIONS, help="only with this one")
    installed = parser.add_mutually_exclusive_group()
    installed.add_argument("--wheel", action="store_true", help="test an installation from a wheel of this checkout")
    installed.add_argument("--program", type=Path, metavar="FILE", help="test the installation of this pi-session-mcp")
    parser.add_argument("--clients", type=Path, metavar="DIRECTORY", help="use the clients in there, as they are")
    parser.add_argument(
        "--cache",
        type=Path,
        default=user_cache_path("pi-session-mcp-acceptance", appauthor=False),
        metavar="DIRECTORY",
        help="where clients and wheels are installed",
    )
    parser.add_argument("--json", type=Path, default=Path("build/acceptance.json"), metavar="FILE", help="the record")
    return parser


def _target(text: str) -> Target:
    try:
        return parse(text)
    except TargetInvalid as invalid:
        message = f"choose from {', '.join(invalid.valid)}"
        raise argparse.ArgumentTypeError(message) from None


def _accept(options: argparse.Namespace) -> int:
    targets = list(dict.fromkeys(options.targets)) or list(ALL_TARGETS)
    clients = list(dict.fromkeys(target.client for target in targets))
    found = (
        programs.given(clients, options.clients) if options.clients else programs.install(clients, options.cache, _say)
    )
    with _installation(options) as installation, closing(_runs(options, targets, found, installation)) as runs:
        document = record(runs, found, installation.kind)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(as_text(document), "utf-8")
    _say(f"{document['passed']} of {document['checks']} checks passed.")
    return PASSED if document["failed"] == 0 else FAILED


def _runs(
    options: argparse.Namespace, targets: Sequence[Target], found: Sequence[Program], installation: Installation
) -> Generator[Run, None, None]:
    by_client = {program.client: program for program in found}
    runtime = _runtime()
    for target in targets if options.only not in {"live", "first"} else ():
        for configuration in CONFIGURATIONS if options.configuration is None else (options.configuration,):
            title = f"{target.short}, {configuration}"
            with home(configuration, by_client[target.client], runtime) as made:
                scenario = Scenario(
                    made, by_client[target.client], target, installation, dict(os.environ), is_quick=options.quick
                )
                checks = scenario.run(_titled(title))
            _tell(title, checks)
            yield Run(target.short, configuration, tuple(checks))
    if options.only != "setup":
        live = live_runs(
            targets, by_client, installation, runtime, dict(os.environ), _say, only_first=options.only == "first"
        )
        with closing(live) as runs:
            for run in runs:
                _tell(f"{run.target}, {run.configuration}", run.checks)
                yield run


def _installation(options: argparse.Namespace) -> AbstractContextManager[Installation]:
    if options.program is not None:
        return nullcontext(installations.of_program(Path(os.path.abspath(options.program)), "other"))
    checkout = installations.of_checkout()
    if not options.wheel and installations.stays(checkout):
        return nullcontext(checkout)
    if not options.wheel:
        _say("This checkout lies where setup registers nothing from, so an installation elsewhere is tested.")
    return installations.of_wheel(options.cache, _say)


def _runtime() -> Runtime:
    try:
        return locate(NothingAsked(), dict(os.environ), Path.cwd())
    except Refusal:
        raise HarnessError("there is no usable Node or Pi SDK: run `pi-session-mcp runtime install`") from None


def _titled(title: str) -> Callable[[str], None]:
    return lambda line: _say(f"{title}: {line}")


def _tell(title: str, checks: Sequence[Check]) -> None:
    failed = [check for check in checks if not check.passed]
    _say(f"{title}: {len(checks) - len(failed)} of {len(checks)} checks passed")
    for check in failed:
        _say(f"{title}: FAILED {check.id}: {check.seen}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    become_subreaper()  # so that whatever is left is found below us
    sys.exit(main())
