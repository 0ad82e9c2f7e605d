"""Packages of broken, hostile and stuck extensions, and what becomes of a session with each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.extensions import PROFILE, install_fixture, install_package

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.extensions import Installed

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
FAILED, CONFLICT, GONE = "extension_load_failed", "extension_tool_conflict", "pi_runtime_unavailable"

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
    "kills-its-host": (factory('process.kill(process.pid, "SIGKILL");'), GONE, "runtime"),
    "floods-its-channel": (
        'import { writeSync } from "node:fs";\n'
        + factory(
            """
            const frame = JSON.stringify({ event: "activity", session: 1, turn: 1 }) + "\\n";
            const frames = Buffer.from(frame.repeat(1000));
            for (let left = frames; ; left = left.length ? left : frames) {
              try { left = left.subarray(writeSync(3, left)); }
              catch (error: any) { if (error.code !== "EAGAIN") throw error; }
            }
            """
        ),
        GONE,
        "runtime",
    ),
    "forges-frames": (
        'import { writeSync } from "node:fs";\n' + factory('writeSync(3, "{}\\n"); ' + FOREVER),
        GONE,
        "runtime",
    ),
    "closes-the-channel": (
        'import { closeSync } from "node:fs";\n' + factory(f"closeSync(3); {FOREVER}"),
        GONE,
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

MANIFESTS: dict[str, Any] = {
    "missing-entry": ["./missing.ts"],
    "empty-list": [],
    "escaping-entry": ["../outside.ts"],
    "link-out": ["./link.ts"],
}


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


def install_bad_packages(agent: Path, directory: Path) -> Installed:
    """All of them, and the fixture package, which is returned; a hanging one says in `directory` that it hangs."""
    good = install_fixture(agent)
    for name, (source, _, _) in SOURCES.items():
        install_package(agent, name, files={"index.ts": source})
    for name, (source, _) in HANGING.items():
        where = json.dumps(str(reached(directory, name)))
        install_package(agent, name, files={"index.ts": source.replace("WHERE", where)})
    for name, entries in MANIFESTS.items():
        package = install_package(agent, name, entries=entries)
        (package / "link.ts").symlink_to(agent / "npm" / "outside.ts")
    (agent / "npm" / "outside.ts").write_text(factory(""))
    (agent / "npm" / "node_modules" / "outside.ts").write_text(factory(""))
    for name in ("flag-a", "flag-b"):
        install_package(agent, name, files={"index.ts": factory('pi.registerFlag("f", { type: "boolean" });')})
    install_package(agent, "twin-a", files={"index.ts": factory('pi.registerTool(tool("twin"));')})
    install_package(agent, "twin-b", files={"index.ts": TOOL + 'export default (pi) => pi.registerTool(tool("twin"));'})
    return good


def reached(directory: Path, name: str) -> Path:
    """What a package that hangs writes when it does."""
    return directory / f"{name} was reached"
