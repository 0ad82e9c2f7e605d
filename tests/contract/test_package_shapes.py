"""Extension packages as package managers leave them, made up here and published by others, load in real sessions."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import psutil
import pytest

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.demo.model import Say
from pi_session_mcp.errors import Refusal
from pi_session_mcp.extensions.outcomes import Condition
from pi_session_mcp.extensions.resolve import Place, judge
from pi_session_mcp.terms import pin
from tests.support.environment import ensure_installed
from tests.support.extensions import ExtensionWorld, install_package, package_directory
from tests.support.large import large_directory
from tests.support.one_host import on_one_host
from tests.support.published import install_published
from tests.support.real import PROFILE as SCRIPTED
from tests.support.real import run_turn
from tests.support.trees import survivors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.process.client import Child
    from tests.support.extensions import Recorded

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


SHAPES: Final = (
    "npm:@scope/hoisted@1.0.0",
    "npm:linked@1.0.0",
    "npm:entries@1.0.0",
    "npm:forms@1.0.0",
    "npm:needs@1.0.0",
    "npm:declares@1.0.0",
    "npm:index-only@1.0.0",
    "npm:ext@1.0.0",
)


@pytest.fixture
def world(tmp_path: Path, runtime: Runtime) -> Iterator[ExtensionWorld]:
    with ExtensionWorld(tmp_path / "world", runtime) as world:
        yield with_profiles(world, *SHAPES)


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory, runtime: Runtime) -> Iterator[ExtensionWorld]:
    with ExtensionWorld(tmp_path_factory.mktemp("shapes") / "world", runtime) as world:
        yield with_profiles(world, *SHAPES)


@pytest.fixture(scope="module")
def server(shared_world: ExtensionWorld) -> Child:
    """One server for packages of several shapes; where they are is looked up when a session starts."""
    return shared_world.serve()


def with_profiles(world: ExtensionWorld, *pins: str) -> ExtensionWorld:
    """A profile `p0`, `p1` and so on for each pin, and a model that answers."""
    world.model.on("hello", Say("from the model"))
    extended = {f"p{place}": pinned(one) for place, one in enumerate(pins)}
    world.profiles({"plain": {**SCRIPTED, "extensions": []}, **extended})
    return world


def pinned(*pins: str, **more: Any) -> dict[str, Any]:
    return {**SCRIPTED, "permissionProfile": "coding", "extensions": list(pins), **more}


def dependency(directory: Path) -> None:
    """A plain library, which only Node's own search can find."""
    directory.mkdir(parents=True)
    (directory / "package.json").write_text('{"name": "dependency", "version": "1.0.0", "main": "index.js"}')
    (directory / "index.js").write_text('exports.word = "word";')


def assert_starts(world: ExtensionWorld, child: Child, shape: str) -> None:
    session = world.start_session(child, f"p{SHAPES.index(shape)}")
    assert run_turn(child, session, "hello")["assistantText"] == "from the model"
    assert child.call("pi_session_close", sessionId=session)["ok"]


def test_a_dependency_that_is_hoisted_beside_a_scoped_package_is_found(
    shared_world: ExtensionWorld, server: Child
) -> None:
    install_package(shared_world.agent_directory, "@scope/hoisted", files={"index.ts": USES_DEPENDENCY})
    beside = package_directory(shared_world.agent_directory, "dependency")
    dependency(beside)

    assert_starts(shared_world, server, "npm:@scope/hoisted@1.0.0")

    shutil.rmtree(beside)  # the next package has one of its own


def test_a_package_of_a_linked_store_finds_the_dependencies_beside_its_real_directory(
    shared_world: ExtensionWorld, server: Child
) -> None:
    made = install_package(shared_world.directory / "made", "linked", files={"index.ts": USES_DEPENDENCY})
    modules = shared_world.agent_directory / "npm" / "node_modules"
    store = modules / ".pnpm" / "linked@1.0.0" / "node_modules"
    store.mkdir(parents=True)
    shutil.move(made, store / "linked")
    dependency(modules / ".pnpm" / "dependency@1.0.0" / "node_modules" / "dependency")
    (store / "dependency").symlink_to("../../dependency@1.0.0/node_modules/dependency")
    (modules / "linked").symlink_to(".pnpm/linked@1.0.0/node_modules/linked")

    assert_starts(shared_world, server, "npm:linked@1.0.0")


def test_the_ways_to_write_an_entry_load(shared_world: ExtensionWorld, server: Child) -> None:
    files = {
        "a.cjs": "module.exports = () => {};",
        "b.mjs": "export default () => {};",
        "lib/c.js": "export default async () => {};",
        "d e.ts": "export default function (): void {}",
    }
    entries = ["./a.cjs", "b.mjs", "./lib/c.js", "./d e.ts"]
    install_package(shared_world.agent_directory, "entries", entries=entries, files=files, type="module")

    assert_starts(shared_world, server, "npm:entries@1.0.0")


def test_what_is_found_by_folders_and_patterns_loads(shared_world: ExtensionWorld, server: Child) -> None:
    files = {
        "src/a.ts": "export default function (): void {}",
        "src/b/index.js": "export default async () => {};",
        "lib/c.ts": "export default () => {};",
        "lib/d.ts": "throw new Error();",
    }
    install_package(shared_world.agent_directory, "forms", entries=["./src", "lib/*.ts", "!lib/d.ts"], files=files)

    assert_starts(shared_world, server, "npm:forms@1.0.0")


def test_a_missing_dependency_that_is_said_beforehand_refuses_the_session_only_when_it_is_imported(
    shared_world: ExtensionWorld, server: Child
) -> None:
    agent = shared_world.agent_directory
    install_package(agent, "needs", files={"index.ts": USES_DEPENDENCY}, dependencies={"dependency": "1.0.0"})
    install_package(agent, "declares", dependencies={"dependency": "1.0.0"})

    found = [judge(pin.parse(f"npm:{name}@1.0.0"), Place(agent, ())) for name in ("needs", "declares")]
    refused = server.call(
        "pi_session_start", workspace="project", executionProfile=f"p{SHAPES.index('npm:needs@1.0.0')}"
    )

    assert [(one.condition, one.resolved is None) for one in found] == [(Condition.DEPENDENCY_MISSING, False)] * 2
    assert refused["error"]["code"] == "extension_load_failed"
    assert_starts(shared_world, server, "npm:declares@1.0.0")


def test_a_package_that_is_an_index_file_and_nothing_else_loads(shared_world: ExtensionWorld, server: Child) -> None:
    directory = install_package(shared_world.agent_directory, "index-only")
    (directory / "package.json").write_text('{"name": "index-only", "version": "1.0.0"}')

    assert_starts(shared_world, server, "npm:index-only@1.0.0")


def test_transpiled_code_is_kept_where_only_we_could_have_put_it(shared_world: ExtensionWorld, server: Child) -> None:
    install_package(shared_world.agent_directory)
    cache = shared_world.temporary / "jiti"
    before = set(cache.iterdir()) if cache.exists() else set()

    assert_starts(shared_world, server, "npm:ext@1.0.0")

    assert set(cache.iterdir()) > before
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_transpiled_code_is_not_kept_where_somebody_else_could_have_put_it(world: ExtensionWorld) -> None:
    install_package(world.agent_directory)
    cache = world.temporary / "jiti"
    cache.mkdir()
    cache.chmod(0o777)

    assert_starts(world, world.serve(), "npm:ext@1.0.0")

    assert list(cache.iterdir()) == []
    assert stat.S_IMODE(cache.stat().st_mode) == 0o777


# --- published packages ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in which npm has installed the published packages, with the options that Pi gives it."""
    with large_directory(tmp_path_factory, "published") as directory:
        install_published(directory, PUBLISHED, "--legacy-peer-deps")
        yield directory


@pytest.fixture(scope="module")
def published_world(
    tmp_path_factory: pytest.TempPathFactory, runtime: Runtime, published: Path
) -> Iterator[ExtensionWorld]:
    """The packages where Pi would have them, each loaded once without haste.

    Pi transpiles what it loads and keeps the result. A session may take only so long to load, which on a busy machine
    is less than it takes to transpile a package with all that it depends on.
    """
    with ExtensionWorld(tmp_path_factory.mktemp("published") / "world", runtime) as world:
        modules = world.agent_directory / "npm" / "node_modules"
        modules.mkdir(parents=True)
        for path in (published / "node_modules").iterdir():
            (modules / path.name).symlink_to(path)
        install_package(world.agent_directory, "redirect", files={"index.ts": REDIRECT})
        with_profiles(world, *map(pin_of, PUBLISHED))
        anyio.run(load_without_haste, world, runtime)
        yield world


async def load_without_haste(world: ExtensionWorld, runtime: Runtime) -> None:
    async with on_one_host(world, runtime, Deadlines(check_step_s=60.0, creation_step_s=120.0)) as sessions:
        for place in range(len(PUBLISHED)):
            with suppress(Refusal):  # whether a server takes it is not for us to say
                await (await sessions.start(f"p{place}")).dispose()


def pin_of(name: str) -> str:
    return f"npm:{name}@{PUBLISHED[name]}"


@pytest.mark.registry
def test_published_extensions_load_each_in_a_session_of_its_own(published_world: ExtensionWorld) -> None:
    world = with_profiles(published_world, *map(pin_of, PUBLISHED))
    child = world.serve(PI_OLLAMA_WEB_TOOLS="0")

    for place in range(len(PUBLISHED)):
        session = world.start_session(child, f"p{place}")
        assert run_turn(child, session, "hello")["assistantText"] == "from the model"
        assert child.call("pi_session_close", sessionId=session)["ok"]
    end(child)


@pytest.mark.registry
def test_a_published_extension_that_adds_tools_while_the_session_starts_is_refused(
    published_world: ExtensionWorld,
) -> None:
    world = with_profiles(published_world, pin_of("pi-ollama-cloud"))
    child = world.serve()

    refused = child.call("pi_session_start", workspace="project", executionProfile="p0")

    assert refused["error"]["code"] == "extension_tool_conflict"
    said = child.wait_for_diagnostic("pi_session_creation_failed")
    assert (said["stage"], said["extension"]) == ("extension_bind", pin_of("pi-ollama-cloud").removeprefix("npm:"))
    end(child)


@pytest.mark.registry
def test_a_published_provider_serves_two_sessions_at_once_and_leaves_nothing(published_world: ExtensionWorld) -> None:
    world = published_world
    model = model_of(package_directory(world.agent_directory, "pi-ollama-cloud"))
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
    frames = end(child)
    assert survivors(below) == []
    assert all(frame["jsonrpc"] == "2.0" for frame in frames)


def end(child: Recorded) -> list[Any]:
    """Every line that the server has said, up to its end."""
    child.close_stdin()
    frames = child.frames + child.rest()
    assert child.wait() == 0
    return frames


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
