"""`python -m benchmarks.extensions`: a warm start of a session with an extension, beside one without."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Final

from benchmarks.client import Client, Launch
from benchmarks.figures import percentile
from benchmarks.world import WORKSPACE, world

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.world import World

ROUNDS: Final = 7
WITHIN_S: Final = 240
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


def main() -> int:
    """Measure and print a table of milliseconds: the first start, and the median of the warm ones."""
    with world() as place:
        launch = Launch(_SERVE, _with_extension(place).environment, place.directory, time.perf_counter() + WITHIN_S)
        starts = {profile: _starts(launch, profile) for profile in ("plain", "extended")}
    print("| session | first start, ms | warm start, p50, ms | warm start, most, ms |")
    print("| --- | ---: | ---: | ---: |")
    for profile, (first, *warm) in starts.items():
        print(f"| {profile} | {first:.0f} | {percentile(warm, 50):.0f} | {max(warm):.0f} |")
    return 0


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
    sys.exit(main())
