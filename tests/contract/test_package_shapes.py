"""Extension packages as package managers leave them, made up here and published by others, load in real sessions."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING, Any, Final

import psutil
import pytest

from pi_session_mcp.demo.model import Say
from tests.support.environment import ensure_installed
from tests.support.extensions import ExtensionWorld, install_package, package_directory
from tests.support.large import large_directory
from tests.support.published import install_published
from tests.support.real import PROFILE as SCRIPTED
from tests.support.real import run_turn
from tests.support.trees import survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.process.client import Child

PUBLISHED: Final = {
    "pi-aliases": "1.0.7",  # one TypeScript file below `src`, nothing else
    "pi-mermaid": "0.3.0",  # an entry at the root, a large tree of dependencies
    "pi-web-access": "0.28.0",  # several tools, dependencies beside it
    "@tintinweb/pi-subagents": "0.14.1",  # a scoped name, which starts sessions of its own on request
    "pi-ollama-cloud": "0.12.1",  # a provider
}
"""Extensions of other authors, by version, with what is special about each."""

REDIRECT = """
const real = globalThis.fetch;
globalThis.fetch = (url: any, init: any) =>
  real(String(url?.url ?? url).replace("https://ollama.com/v1", process.env.LOOPBACK_MODEL!), init);
export default function () {}
"""
"""An extension that leads the cloud provider's requests to the model of the test."""

USES_DEPENDENCY = """
import { word } from "dependency";
export default function (pi: any) {
  pi.registerCommand(word, { description: word, handler: async () => {} });
}
"""


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture
def world(tmp_path: Path, runtime: Runtime) -> Iterator[ExtensionWorld]:
    with ExtensionWorld(tmp_path / "world", runtime) as world:
        world.model.on("hello", Say("from the model"))
        yield world


def pinned(*pins: str, **more: Any) -> dict[str, Any]:
    return {**SCRIPTED, "permissionProfile": "coding", "extensions": list(pins), **more}


def dependency(directory: Path) -> None:
    """A plain library, which only Node's own search can find."""
    directory.mkdir(parents=True)
    (directory / "package.json").write_text('{"name": "dependency", "version": "1.0.0", "main": "index.js"}')
    (directory / "index.js").write_text('exports.word = "word";')


def assert_starts(world: ExtensionWorld, pin: str) -> None:
    world.profiles({"plain": {**SCRIPTED, "extensions": []}, "pinned": pinned(pin)})
    child = world.serve()
    assert run_turn(child, world.start_session(child, "pinned"), "hello")["assistantText"] == "from the model"


def test_a_dependency_that_is_hoisted_beside_a_scoped_package_is_found(world: ExtensionWorld) -> None:
    install_package(world.agent_directory, "@scope/ext", files={"index.ts": USES_DEPENDENCY})
    dependency(package_directory(world.agent_directory, "dependency"))

    assert_starts(world, "npm:@scope/ext@1.0.0")


def test_a_package_of_a_linked_store_finds_the_dependencies_beside_its_real_directory(world: ExtensionWorld) -> None:
    made = install_package(world.directory / "made", "ext", files={"index.ts": USES_DEPENDENCY})
    modules = world.agent_directory / "npm" / "node_modules"
    store = modules / ".pnpm" / "ext@1.0.0" / "node_modules"
    store.mkdir(parents=True)
    shutil.move(made, store / "ext")
    dependency(modules / ".pnpm" / "dependency@1.0.0" / "node_modules" / "dependency")
    (store / "dependency").symlink_to("../../dependency@1.0.0/node_modules/dependency")
    (modules / "ext").symlink_to(".pnpm/ext@1.0.0/node_modules/ext")

    assert_starts(world, "npm:ext@1.0.0")


def test_the_ways_to_write_an_entry_load(world: ExtensionWorld) -> None:
    files = {
        "a.cjs": "module.exports = () => {};",
        "b.mjs": "export default () => {};",
        "lib/c.js": "export default async () => {};",
        "d e.ts": "export default function (): void {}",
    }
    install_package(
        world.agent_directory, entries=["./a.cjs", "b.mjs", "./lib/c.js", "./d e.ts"], files=files, type="module"
    )

    assert_starts(world, "npm:ext@1.0.0")


@pytest.mark.parametrize("planted", [False, True], ids=["ours", "somebody's"])
def test_transpiled_code_is_kept_only_where_nobody_else_could_have_put_it(
    world: ExtensionWorld, *, planted: bool
) -> None:
    install_package(world.agent_directory)
    cache = world.temporary / "jiti"
    if planted:
        cache.mkdir()
        cache.chmod(0o777)

    assert_starts(world, "npm:ext@1.0.0")

    assert bool(list(cache.iterdir())) is not planted
    assert stat.S_IMODE(cache.stat().st_mode) == (0o777 if planted else 0o700)


# --- published packages ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in which npm has installed the published packages, with the options that Pi gives it."""
    with large_directory(tmp_path_factory, "published") as directory:
        install_published(directory, PUBLISHED, "--legacy-peer-deps")
        yield directory


@pytest.fixture
def published_world(world: ExtensionWorld, published: Path) -> ExtensionWorld:
    (world.agent_directory / "npm").mkdir()
    (world.agent_directory / "npm" / "node_modules").symlink_to(published / "node_modules")
    return world


def pin_of(name: str) -> str:
    return f"npm:{name}@{PUBLISHED[name]}"


@pytest.mark.registry
def test_published_extensions_load_each_in_a_session_of_its_own(published_world: ExtensionWorld) -> None:
    world = published_world
    profiles = {f"p{place}": pinned(pin_of(name)) for place, name in enumerate(PUBLISHED)}
    world.profiles({"plain": {**SCRIPTED, "extensions": []}, **profiles})
    child = world.serve(PI_OLLAMA_WEB_TOOLS="0")

    for alias in profiles:
        session = start_patiently(world, child, alias)
        assert run_turn(child, session, "hello")["assistantText"] == "from the model"
        assert child.call("pi_session_close", sessionId=session)["ok"]


@pytest.mark.registry
def test_a_published_extension_that_adds_tools_while_the_session_starts_is_refused(
    published_world: ExtensionWorld,
) -> None:
    world = published_world
    world.profiles({"plain": {**SCRIPTED, "extensions": []}, "pinned": pinned(pin_of("pi-ollama-cloud"))})
    child = world.serve()

    refused = child.call("pi_session_start", workspace="project", executionProfile="pinned")

    assert refused["error"]["code"] == "extension_tool_conflict"
    said = child.wait_for_diagnostic("pi_session_creation_failed")
    assert (said["stage"], said["extension"]) == ("extension_bind", pin_of("pi-ollama-cloud").removeprefix("npm:"))


@pytest.mark.registry
def test_a_published_provider_serves_two_sessions_at_once_and_leaves_nothing(published_world: ExtensionWorld) -> None:
    world = published_world
    install_package(world.agent_directory.with_name("made"), "redirect", files={"index.ts": REDIRECT})
    modules = world.agent_directory / "npm" / "node_modules"
    names = {path.name: path for path in modules.resolve().iterdir()}
    modules.unlink()
    modules.mkdir()
    for name, path in names.items():
        (modules / name).symlink_to(path)
    (modules / "redirect").symlink_to(package_directory(world.agent_directory.with_name("made"), "redirect"))
    model = model_of(modules / "pi-ollama-cloud")
    pins = [pin_of("pi-ollama-cloud"), "npm:redirect@1.0.0"]
    selection = {"provider": "ollama-cloud", "model": model, "thinkingLevel": "high"}
    world.profiles({"plain": {**SCRIPTED, "extensions": []}, "cloud": pinned(*pins, **selection)})
    world.model.on("first", Say("to the first"))
    world.model.on("second", Say("to the second"))
    child = world.serve(PI_OLLAMA_WEB_TOOLS="0", OLLAMA_API_KEY="loopback", LOOPBACK_MODEL=world.model.base_url)

    first, second = world.start_session(child, "cloud"), world.start_session(child, "cloud")

    assert run_turn(child, first, "first")["assistantText"] == "to the first"
    assert run_turn(child, second, "second")["assistantText"] == "to the second"
    below = psutil.Process(child.process.pid).children(recursive=True)
    held = {path for process in below for path in standard_streams(process)}
    assert held.isdisjoint(standard_streams(psutil.Process(child.process.pid)) - {"/dev/null"})
    child.close_stdin()
    frames = child.frames + child.rest()
    assert child.wait() == 0
    assert survivors(below) == []
    assert all(frame["jsonrpc"] == "2.0" for frame in frames)


def start_patiently(world: ExtensionWorld, child: Child, alias: str) -> str:
    """A session's id. Pi transpiles what it loads and keeps the result, for which a busy machine may need two tries."""
    answer = child.call("pi_session_start", workspace="project", executionProfile=alias)
    return str(answer["session"]["id"]) if answer["ok"] else world.start_session(child, alias)


def model_of(package: Path) -> str:
    """A model with thinking of the provider's own list."""
    text = (package / "models.generated.ts").read_text()
    models = [block for block in text.split('    id: "')[1:] if "reasoning: true" in block and 'high: "high"' in block]
    return models[0].partition('"')[0]


def standard_streams(process: psutil.Process) -> set[str]:
    """What a process holds as its standard streams, where the system shows it."""
    found = set()
    for descriptor in range(3):
        try:
            found.add(os.readlink(f"/proc/{process.pid}/fd/{descriptor}"))
        except OSError:
            continue
    return found
