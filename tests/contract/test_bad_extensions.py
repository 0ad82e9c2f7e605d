"""Broken, hostile and stuck extensions: the right code within its bound, nothing left, and the next session fine."""

from __future__ import annotations

import json
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.environment import ensure_installed
from tests.support.extensions import PROFILE, ExtensionWorld, install_fixture, install_package
from tests.support.trees import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from tests.support.extensions import Recorded

CANARY = "canary-error-text"
TOOL = """
const tool = (name) => ({
  name, label: "t", description: "d", parameters: { type: "object", properties: {} },
  execute: async () => ({ content: [] }),
});
"""
PROVIDER = """
pi.registerProvider("fixture", {
  baseUrl: "http://127.0.0.1:9/", apiKey: "k", api: "openai-completions",
  models: [{ id: "fixture-1", name: "x", reasoning: false, input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 1000, maxTokens: 100 }],
});
"""
REACHED = 'const reached = () => require("node:fs").writeFileSync(WHERE, "");'
FOREVER = "reached(); await new Promise(() => {});"
BLOCK = "reached(); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);"
"""Keeps the only thread, as an endless loop does, but leaves the processor to others."""


def factory(body: str) -> str:
    """An extension with the profile's provider whose factory does this as well."""
    return f"{TOOL}\nexport default async function (pi: any) {{\n{PROVIDER}\n{body}\n}}\n"


def hook(event: str, body: str) -> str:
    return factory(f'pi.on("{event}", async (event, ctx) => {{ {body} }});')


def tool(name: str) -> str:
    return factory(f"pi.registerTool(tool({json.dumps(name)}));")


LOAD, RESOLVE, BIND = "extension_load", "extension_resolve", "extension_bind"
FAILED, CONFLICT = "extension_load_failed", "extension_tool_conflict"

SOURCES: dict[str, tuple[str, str, str]] = {
    "syntax-error": ("export default function ( {", FAILED, LOAD),
    "throws-at-load": (f"throw new Error({CANARY!r});\nexport default () => {{}};", FAILED, LOAD),
    "factory-throws": (factory(f"throw new Error({CANARY!r});"), FAILED, LOAD),
    "missing-import": ('import "a-package-that-is-not-there";\nexport default () => {};', FAILED, LOAD),
    "no-factory": ("export default 7;", FAILED, LOAD),
    "no-export": ("export const nothing = 1;", FAILED, LOAD),
    "bad-provider": ('export default (pi) => pi.registerProvider("bad", { models: [{ id: "x" }] });', FAILED, LOAD),
    "throws-at-start": (hook("session_start", f"throw new Error({CANARY!r});"), FAILED, BIND),
    "mcp-server-at-load": (factory('pi.registerMcpServer("m", { command: "touch", args: ["ran"] });'), FAILED, BIND),
    "mcp-server-at-start": (hook("session_start", 'pi.registerMcpServer("m", { command: "touch" });'), FAILED, BIND),
    "tool-at-start": (hook("session_start", 'pi.registerTool(tool("late"));'), CONFLICT, BIND),
    "replaces-read-at-start": (hook("session_start", 'pi.registerTool(tool("read"));'), CONFLICT, BIND),
    "replaces-read": (tool("read"), CONFLICT, LOAD),
    "replaces-bash": (tool("bash"), CONFLICT, LOAD),
    "glob-name": (tool("*"), CONFLICT, LOAD),
    "plus-name": (tool("+x"), CONFLICT, LOAD),
    "long-name": (tool("x" * 65), CONFLICT, LOAD),
    "empty-name": (tool(""), CONFLICT, LOAD),
    "no-name": (factory("pi.registerTool(tool(undefined));"), CONFLICT, LOAD),
    "mcp-name": (tool("mcp__x"), CONFLICT, LOAD),
    "reserved-name": (tool("list_mcp_resources"), CONFLICT, LOAD),
    "another-model": (hook("session_start", 'await pi.setThinkingLevel("high"); pi.setActiveTools([]);'), "", ""),
    "no-provider": ("export default () => {};", "unknown_provider", "provider"),
    "kills-its-host": (factory('process.kill(process.pid, "SIGKILL");'), "pi_runtime_unavailable", "runtime"),
    "forges-frames": (
        'import { writeSync } from "node:fs";\n' + factory('writeSync(3, "{}\\n"); ' + FOREVER),
        "pi_runtime_unavailable",
        "runtime",
    ),
    "closes-the-channel": (
        'import { closeSync } from "node:fs";\n' + factory(f"closeSync(3); {FOREVER}"),
        "pi_runtime_unavailable",
        "runtime",
    ),
}
"""What its entry says, and the code and the stage of the refusal; no code where the session is fine."""

HANGING: dict[str, tuple[str, str]] = {
    "hanging-import": (f"{REACHED}\n{FOREVER}\nexport default () => {{}};", LOAD),
    "hanging-factory": (factory(REACHED + FOREVER), LOAD),
    "blocking-factory": (factory(REACHED + BLOCK), LOAD),
    "hanging-start": (hook("session_start", REACHED + FOREVER), BIND),
    "blocking-start": (hook("session_start", REACHED + BLOCK), BIND),
    "hanging-discovery": (hook("resources_discover", REACHED + FOREVER), BIND),
}
"""What its entry says, and the stage in which it never ends; it writes a file once it is there."""

COVERED_ELSEWHERE = {
    *("no-factory", "no-export"),  # with a host alone
    *("replaces-bash", "plus-name", "long-name", "empty-name", "mcp-name", "reserved-name"),  # by the rules' own tests
}
"""What the plain run leaves out."""

MANIFESTS: dict[str, Any] = {
    "missing-entry": ["./missing.ts"],
    "empty-list": [],
    "escaping-entry": ["../outside.ts"],
    "link-out": ["./link.ts"],
}


class Bench:
    """One server with a profile for each bad package, and a good one that shows that nothing was harmed."""

    def __init__(self, world: ExtensionWorld, child: Recorded) -> None:
        self.world = world
        self.child = child

    def start(self, profile: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.child.call("pi_session_start", workspace="project", executionProfile=profile)
        return answer

    def begin_to_hang(self, name: str) -> object:
        """The id of a request whose host has come so far that it hangs: the next host's start competes with nothing."""
        arguments = {"workspace": "project", "executionProfile": name}
        request = self.child.start_request("tools/call", {"name": "pi_session_start", "arguments": arguments})
        deadline = monotonic() + WAIT_S
        while not self.reached(name).exists():
            assert monotonic() < deadline, name
            sleep(0.01)
        return request

    def reached(self, name: str) -> Path:
        return self.world.directory / f"{name} was reached"

    def answers_to(self, requests: Collection[object]) -> dict[object, Any]:
        """The structured results, in whatever order they come."""
        answers: dict[object, Any] = {}
        while len(answers) < len(requests):
            frame = self.child.receive()
            if frame.get("id") in requests:
                answers[frame["id"]] = frame["result"]["structuredContent"]
        return answers

    def assert_failed(self, answer: dict[str, Any], name: str, code: str, stage: str) -> None:
        """The session was refused so, and nothing that the extension or its place says came out."""
        assert (answer["ok"], answer["error"]["code"]) == (False, code)
        said = self.child.wait_for_failure_of(name)
        assert (said["code"], said["stage"]) == (code, stage)
        assert said.get("extension") == (f"{name}@1.0.0" if code.startswith("extension_") else None)
        text = self.child.stderr.decode()
        assert CANARY not in text
        assert str(self.world.directory) not in text

    def assert_only_the_spare_host_is_left(self) -> None:
        hosts = self.child.hosts()
        assert len(hosts) <= 1, "a host of a refused session is alive"

    def assert_the_next_session_is_fine(self) -> None:
        started = self.start("good")
        assert started["ok"], started
        assert self.child.call("pi_session_close", sessionId=started["session"]["id"])["ok"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with ExtensionWorld(tmp_path_factory.mktemp("bad") / "world", ensure_installed()) as world:
        agent = world.agent_directory
        install_fixture(agent)
        for name, (source, _, _) in SOURCES.items():
            install_package(agent, name, files={"index.ts": source})
        for name, (source, _) in HANGING.items():
            where = json.dumps(str(world.directory / f"{name} was reached"))
            install_package(agent, name, files={"index.ts": source.replace("WHERE", where)})
        for name, entries in MANIFESTS.items():
            directory = install_package(agent, name, entries=entries)
            (directory / "link.ts").symlink_to(agent / "npm" / "outside.ts")
        (agent / "npm" / "outside.ts").write_text(factory(""))
        (agent / "npm" / "node_modules" / "outside.ts").write_text(factory(""))
        for name in ("flag-a", "flag-b"):
            install_package(agent, name, files={"index.ts": factory('pi.registerFlag("f", { type: "boolean" });')})
        install_package(agent, "twin-a", files={"index.ts": factory('pi.registerTool(tool("twin"));')})
        install_package(
            agent, "twin-b", files={"index.ts": TOOL + 'export default (pi) => pi.registerTool(tool("twin"));'}
        )
        world.profiles({"good": {}, **{name: pinned(name) for name in [*SOURCES, *HANGING, *MANIFESTS]}, **PAIRS})
        yield Bench(world, world.serve())


def pinned(*names: str) -> dict[str, Any]:
    return {"permissionProfile": "coding", "extensions": [f"npm:{name}@1.0.0" for name in names]}


PAIRS = {
    "twins": pinned("twin-a", "twin-b"),
    "second-is-broken": pinned("twin-a", "syntax-error"),
    "second-throws-at-start": pinned("twin-a", "throws-at-start"),
    "same-flag-in-two": pinned("flag-a", "flag-b"),
    "beside-the-fixture": {"permissionProfile": "coding", "extensions": [*PROFILE["extensions"], "npm:twin-b@1.0.0"]},
}
"""Profiles with two extensions."""


def kinds() -> Iterator[object]:
    """Every bad extension, and whether it is the first that is refused in its way."""
    seen = set()
    for name, (_, code, stage) in SOURCES.items():
        if code:
            marks = pytest.mark.matrix if name in COVERED_ELSEWHERE else ()
            yield pytest.param(name, (code, stage) not in seen, id=name, marks=marks)
            seen.add((code, stage))


@pytest.mark.parametrize(("name", "is_first"), [*kinds()])
def test_a_bad_extension_is_refused_and_nothing_of_it_is_left(bench: Bench, name: str, *, is_first: bool) -> None:
    _, code, stage = SOURCES[name]

    bench.assert_failed(bench.start(name), name, code, stage)

    bench.assert_only_the_spare_host_is_left()
    if is_first:
        bench.assert_the_next_session_is_fine()


def test_extensions_that_hang_are_refused_at_the_bound_and_nothing_of_them_is_left(bench: Bench) -> None:
    names = {bench.begin_to_hang(name): name for name in HANGING}

    for request, answer in bench.answers_to(names).items():
        bench.assert_failed(answer, names[request], FAILED, HANGING[names[request]][1])

    bench.assert_only_the_spare_host_is_left()
    bench.assert_the_next_session_is_fine()


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_bad_manifest_is_refused_without_a_host(bench: Bench, name: str) -> None:
    before = bench.child.hosts()

    assert bench.start(name)["error"]["code"] == FAILED

    said = bench.child.wait_for_failure_of(name)
    assert (said["stage"], said["extension"]) == (RESOLVE, f"{name}@1.0.0")
    assert {host.pid for host in before} <= {host.pid for host in bench.child.hosts()}


@pytest.mark.parametrize(
    ("profile", "code", "stage", "extension"),
    [
        ("twins", CONFLICT, LOAD, "twin-b@1.0.0"),
        ("same-flag-in-two", FAILED, LOAD, "flag-b@1.0.0"),
        ("second-is-broken", FAILED, LOAD, "syntax-error@1.0.0"),
        ("second-throws-at-start", FAILED, BIND, "throws-at-start@1.0.0"),
    ],
)
def test_of_two_extensions_the_one_at_fault_is_named(
    bench: Bench, profile: str, code: str, stage: str, extension: str
) -> None:
    assert bench.start(profile)["error"]["code"] == code

    said = bench.child.wait_for_failure_of(profile)
    assert (said["stage"], said["extension"]) == (stage, extension)
    bench.assert_only_the_spare_host_is_left()


def test_two_extensions_that_get_along_are_loaded_together(bench: Bench) -> None:
    started = bench.start("beside-the-fixture")

    assert started["ok"], started
    prompted = bench.child.call("pi_session_prompt", sessionId=started["session"]["id"], prompt="tools", waitMs=30_000)
    assert prompted["turn"]["assistantText"].endswith("fixture_tool twin")
    assert bench.child.call("pi_session_close", sessionId=started["session"]["id"])["ok"]


def test_an_extension_may_narrow_the_tools_and_cannot_change_the_rest(bench: Bench) -> None:
    started = bench.start("another-model")

    assert started["ok"], started
    assert started["session"]["thinkingLevel"] == "off"
    assert bench.child.call("pi_session_close", sessionId=started["session"]["id"])["ok"]


def test_after_all_of_them_a_session_is_fine_and_no_refused_one_is_listed(bench: Bench) -> None:
    bench.assert_the_next_session_is_fine()

    assert bench.child.call("pi_session_list")["sessions"] == []
