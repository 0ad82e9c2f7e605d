"""All live runs that were asked for, each client in a home of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acceptance.homes import empty_home, home
from acceptance.live.clients import LIVE
from acceptance.live.first_steps import FirstSteps
from acceptance.live.scenario import Live

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from acceptance.installations import Installation
    from acceptance.programs import Program
    from acceptance.record import Run
    from pi_session_mcp.runtime.locate import Runtime
    from pi_session_mcp.setup.targets import Target


def live_runs(
    targets: Sequence[Target],
    by_client: Mapping[str, Program],
    installation: Installation,
    runtime: Runtime,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    *,
    only_first: bool = False,
) -> Generator[Run, None, None]:
    """The runs for those of `targets` whose client can delegate with a scripted model. Raises `HarnessError`."""
    for client in LIVE:
        if client.target in targets:
            program = by_client[client.target.client]
            with empty_home(program, runtime) as made:
                first = FirstSteps(made, program, client, installation, _titled(say, client.target.short))
                yield first.run()
            if only_first:
                continue
            with home("plain", program, runtime) as made:
                live = Live(made, program, client, installation, environ, _titled(say, client.target.short))
                yield from live.run()


def _titled(say: Callable[[str], None], title: str) -> Callable[[str], None]:
    return lambda line: say(f"{title}, live: {line}")
