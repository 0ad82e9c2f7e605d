"""`python -m benchmarks.extensions`: a warm start of a session with an extension, beside one without."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Final

from benchmarks.budgets import Above, Budget, Verdict
from benchmarks.client import Client, Failed, Launch
from benchmarks.figures import Unit, percentile
from benchmarks.parts import Part
from benchmarks.report import number, table, verdict_as_json, verdicts_as_text
from benchmarks.world import WORKSPACE, world

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.world import World

MARK: Final = "extensions"
TITLE: Final = "Sessions with an extension"
ROUNDS: Final = 7
WITHIN_S: Final = 120
_PLAIN: Final = "plain"
_EXTENDED: Final = "extended"
_MORE_MS: Final = 250.0
"""Less than a Node with the SDK takes to start: past it, the spare host does not hide that."""
_SERVE: Final = (sys.executable, "-m", "pi_session_mcp", "serve")
_EXTENSION: Final = """
export default function (pi: any) {
  pi.on("session_start", async () => {});
  pi.registerTool({
    name: "measured", label: "m", description: "m", parameters: { type: "object", properties: {} },
    execute: async () => ({ content: [] }),
  });
}
"""


def part() -> Part:
    """The first start and the warm ones, with and without an extension; within two minutes, or it failed."""
    with world() as place:
        launch = Launch(_SERVE, _with_extension(place).environment, place.directory, time.perf_counter() + WITHIN_S)
        try:
            return _part({profile: _starts(launch, profile) for profile in (_PLAIN, _EXTENDED)})
        except Failed as failure:
            return Part(MARK, TITLE, "", verdicts=[verdict(None)], failures=[str(failure)])


def _part(starts: Mapping[str, Sequence[float]]) -> Part:
    rows = [["Session start, ms", "first", "warm, p50", "warm, most"]]
    for profile, (first, *warm) in starts.items():
        rows.append([profile, number(first), number(percentile(warm, 50)), number(max(warm))])
    more = percentile(starts[_EXTENDED][1:], 50) - percentile(starts[_PLAIN][1:], 50)
    found = verdict(more)
    values = {"ms": dict(starts), "budgets": [verdict_as_json(found)]}
    return Part(MARK, TITLE, f"{table(rows)}\n\n{verdicts_as_text([found])}", verdicts=[found], values=values)


def verdict(more_ms: float | None) -> Verdict:
    """Whether a warm start with an extension is near enough to one without. A bound of our own."""
    budget = Budget("warm start with an extension, above one without", "warm_start_p50", Above(_MORE_MS))
    return Verdict(budget, more_ms, _MORE_MS, f"{Unit.MS} more")


def _starts(launch: Launch, profile: str) -> list[float]:
    """Milliseconds of each start; every one but the first finds a host that is ready."""
    took = []
    with Client(launch) as client:
        client.handshake()
        for _ in range(ROUNDS):
            seconds, content = client.timed_call("pi_session_start", workspace=WORKSPACE, executionProfile=profile)
            took.append(seconds * 1000)
            client.call("pi_session_close", sessionId=content["session"]["id"])
            client.settle()
        client.end()
    return took


def _with_extension(place: World) -> World:
    """The world with an installed extension and a second profile that pins it."""
    _install(place.directory / "agent" / "npm" / "node_modules" / "measured")
    path = place.directory / "configuration.json"
    configuration = json.loads(path.read_text(encoding="utf-8"))
    (profile,) = configuration["executionProfiles"].values()
    extended = {**profile, "default": False, "permissionProfile": "coding", "extensions": ["npm:measured@1.0.0"]}
    configuration["executionProfiles"] = {"plain": profile, "extended": extended}
    path.write_text(json.dumps(configuration), encoding="utf-8")
    return place


def _install(package: Path) -> None:
    package.mkdir(parents=True)
    manifest = {"name": "measured", "version": "1.0.0", "pi": {"extensions": ["./index.ts"]}}
    (package / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    (package / "index.ts").write_text(_EXTENSION, encoding="utf-8")


if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["--part", MARK, *sys.argv[1:]]))
