"""The first runtime that is there decides, and is checked, not skipped."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.platform.paths import fixed_data_directory
from pi_session_mcp.runtime.locate import Runtime, locate
from pi_session_mcp.runtime.record import Place, sdk_directory
from tests.support.runtimes import RIPGREP, Override, Wishes, installed, place_in_environment, program, sdk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class World:
    """A machine in a directory: a home, a Python environment, a PATH, and a project to work in."""

    root: Path

    @property
    def prefix(self) -> Path:
        return self.root / "environment"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": str(self.root / "bin")}

    @property
    def place(self) -> Place:
        return place_in_environment(self.prefix)

    @property
    def home_place(self) -> Place:
        return Place(fixed_data_directory(self.home), self.home)

    def locate(self, wishes: Wishes | None = None, **environ: str) -> Runtime:
        return locate(wishes or Wishes(), self.environ | environ, self.root / "project", prefix=self.prefix)

    def refuses(self, wishes: Wishes | None = None) -> bool:
        with pytest.raises(Refusal) as refused:
            self.locate(wishes)
        return refused.value.code is Code.PI_RUNTIME_UNAVAILABLE and refused.value.stage is Stage.RUNTIME

    def node(self, name: str) -> Path:
        return program(self.root / name / "node")

    def node_and_pi_on_path(self, version: str = "1.6.0") -> Path:
        package = sdk(self.root / "lib" / "node_modules" / "pi", version)
        program(package / "dist" / "bundle" / "cli.js")
        self.node("bin")
        (self.root / "bin" / "pi").symlink_to(package / "dist" / "bundle" / "cli.js")
        return package


@pytest.fixture
def world(tmp_path: Path) -> World:
    for name in ("environment", "home", "project"):
        (tmp_path / name).mkdir()
    return World(tmp_path)


def test_what_the_configuration_names_comes_first(world: World) -> None:
    installed(world.place, world.node("recorded"))
    world.node_and_pi_on_path()
    node, package = world.node("configured"), sdk(world.root / "configured-sdk", "1.5.2")

    runtime = world.locate(Wishes(runtime=Override(node, package)))

    assert (runtime.node, runtime.sdk_entry) == (node, package / "dist" / "index.js")
    assert (runtime.node_source, runtime.sdk_source) == ("configuration", "configuration")
    assert runtime.sdk_version == "1.5.2"


def test_what_was_installed_comes_before_path(world: World) -> None:
    node = world.node("recorded")
    install = installed(world.place, node)
    world.node_and_pi_on_path()

    runtime = world.locate()

    assert (runtime.node, runtime.node_source) == (node, "installed")
    assert (runtime.sdk_entry, runtime.sdk_source) == (sdk_directory(install) / "dist" / "index.js", "installed")
    assert runtime.tools == install / "node_modules" / "@vscode" / RIPGREP / "bin"


def test_node_and_the_sdk_behind_pi_on_path_come_last(world: World) -> None:
    package = world.node_and_pi_on_path()

    runtime = world.locate()

    assert (runtime.node, runtime.node_source) == (world.root / "bin" / "node", "path")
    assert (runtime.sdk_entry, runtime.sdk_source) == (package / "dist" / "index.js", "path")
    assert runtime.tools is None, "only the install's own ripgrep is ever put on PATH"


def test_each_part_is_decided_by_itself(world: World) -> None:
    install = installed(world.place, world.node("recorded"))
    node = world.node("configured")

    runtime = world.locate(Wishes(runtime=Override(node=node)))

    assert (runtime.node_source, runtime.sdk_source) == ("configuration", "installed")
    assert runtime.sdk_entry.is_relative_to(install)


def test_nothing_there_is_refused(world: World) -> None:
    assert world.refuses()


def configured_node_absent(world: World) -> Wishes:
    return Wishes(runtime=Override(node=world.root / "absent" / "node"))


def configured_node_not_executable(world: World) -> Wishes:
    world.node("plain").chmod(0o644)
    return Wishes(runtime=Override(node=world.root / "plain" / "node"))


def configured_sdk_absent(world: World) -> Wishes:
    return Wishes(runtime=Override(sdk=world.root / "absent"))


def configured_sdk_of_another_name(world: World) -> Wishes:
    return Wishes(runtime=Override(sdk=sdk(world.root / "other", name="pi")))


def configured_sdk_too_old(world: World) -> Wishes:
    return Wishes(runtime=Override(sdk=sdk(world.root / "old", "1.5.1")))


def configured_sdk_too_new(world: World) -> Wishes:
    return Wishes(runtime=Override(sdk=sdk(world.root / "new", "1.7.0")))


def configured_sdk_without_its_entry(world: World) -> Wishes:
    (sdk(world.root / "gutted") / "dist" / "index.js").unlink()
    return Wishes(runtime=Override(sdk=world.root / "gutted"))


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"name": 1}', "[" * 100_000, '{"name": "' + "x" * 1_048_576])
def test_a_manifest_that_cannot_be_read_is_refused(world: World, manifest: str) -> None:
    installed(world.place, world.node("recorded"))
    (sdk(world.root / "odd") / "package.json").write_text(manifest)

    assert world.refuses(Wishes(runtime=Override(sdk=world.root / "odd")))


@pytest.mark.parametrize(
    "choose",
    [
        configured_node_absent,
        configured_node_not_executable,
        configured_sdk_absent,
        configured_sdk_of_another_name,
        configured_sdk_too_old,
        configured_sdk_too_new,
        configured_sdk_without_its_entry,
    ],
)
def test_an_unusable_configured_runtime_is_refused_though_an_installed_one_would_do(
    world: World, choose: Callable[[World], Wishes]
) -> None:
    installed(world.place, world.node("recorded"))
    world.node_and_pi_on_path()

    assert world.refuses(choose(world))


def node_gone(world: World, _install: Path) -> None:
    shutil.rmtree(world.root / "recorded")


def install_gone(_world: World, install: Path) -> None:
    shutil.rmtree(install)


def ripgrep_gone(_world: World, install: Path) -> None:
    (install / "node_modules" / "@vscode" / RIPGREP / "bin" / "rg").unlink()


def record_torn(world: World, _install: Path) -> None:
    world.place.record_file.write_text('{"schemaVersion": 1, "lo')


def record_of_another_schema(world: World, _install: Path) -> None:
    record = world.place.record_file.read_text()
    world.place.record_file.write_text(record.replace('"schemaVersion": 1', '"schemaVersion": 2'))


def record_with_a_path_for_a_lock(world: World, _install: Path) -> None:
    record = world.place.record_file.read_text()
    world.place.record_file.write_text(record.replace("0" * 64, "../" * 20))


def record_with_a_relative_node(world: World, _install: Path) -> None:
    record = world.place.record_file.read_text()
    world.place.record_file.write_text(record.replace(str(world.root / "recorded" / "node"), "node"))


def record_of_an_old_node(world: World, _install: Path) -> None:
    record = world.place.record_file.read_text()
    world.place.record_file.write_text(record.replace("v24.19.0", "v22.18.9"))


def record_too_large(world: World, _install: Path) -> None:
    record = world.place.record_file.read_text()
    world.place.record_file.write_text(record + " " * 65_536)


def record_is_a_fifo(world: World, _install: Path) -> None:
    world.place.record_file.unlink()
    os.mkfifo(world.place.record_file)


def record_writable_by_others(world: World, _install: Path) -> None:
    world.place.record_file.chmod(0o666)


def place_writable_by_others(world: World, _install: Path) -> None:
    world.place.root.chmod(0o777)


@pytest.mark.parametrize(
    "damage",
    [
        node_gone,
        install_gone,
        ripgrep_gone,
        record_torn,
        record_of_another_schema,
        record_with_a_path_for_a_lock,
        record_with_a_relative_node,
        record_of_an_old_node,
        record_too_large,
        record_is_a_fifo,
        record_writable_by_others,
        place_writable_by_others,
    ],
)
def test_a_damaged_install_is_refused_though_one_on_path_would_do(
    world: World, damage: Callable[[World, Path], None]
) -> None:
    install = installed(world.place, world.node("recorded"))
    world.node_and_pi_on_path()
    world.locate()

    damage(world, install)

    assert world.refuses()


def test_an_install_below_home_is_found_when_the_environment_has_none(world: World) -> None:
    install = installed(world.home_place, world.node("recorded"))

    assert world.locate().sdk_entry.is_relative_to(install)


def test_the_environment_is_read_first_whatever_is_writable_now(world: World) -> None:
    installed(world.home_place, world.node("recorded"))
    install = installed(world.place, world.node("recorded"))
    world.place.root.chmod(0o555)

    assert world.locate().sdk_entry.is_relative_to(install)
    world.place.root.chmod(0o755)


def test_no_variable_chooses_a_program_or_a_package(world: World) -> None:
    install = installed(world.place, world.node("recorded"))
    other, package = world.node("other"), sdk(world.root / "other-sdk")
    names = ("NODE", "NODE_PATH", "NODE_HOME", "NVM_BIN", "npm_node_execpath", "PI_PACKAGE_DIR", "NPM_CONFIG_PREFIX")

    runtime = world.locate(None, XDG_DATA_HOME=str(package), **dict.fromkeys(names, str(other)))

    assert runtime.node == world.root / "recorded" / "node"
    assert runtime.sdk_entry.is_relative_to(install)


def test_a_pi_of_another_package_on_path_is_refused(world: World) -> None:
    installed_elsewhere = sdk(world.root / "lib" / "other", name="some-other-pi")
    program(installed_elsewhere / "cli.js")
    world.node("bin")
    (world.root / "bin" / "pi").symlink_to(installed_elsewhere / "cli.js")

    assert world.refuses()


def test_a_pi_on_path_that_belongs_to_no_package_is_refused(world: World) -> None:
    world.node("bin")
    program(world.root / "bin" / "pi")

    assert world.refuses()


@pytest.mark.parametrize(
    ("version", "accepted"), [("1.5.1", False), ("1.5.2", True), ("1.6.9", True), ("1.7.0", False)]
)
def test_the_tested_range_holds_for_the_pi_on_path(world: World, version: str, *, accepted: bool) -> None:
    world.node_and_pi_on_path(version)

    if accepted:
        assert world.locate().sdk_version == version
    else:
        assert world.refuses()


def test_an_entry_that_others_can_write_is_refused_behind_the_pi_on_path(world: World) -> None:
    package = world.node_and_pi_on_path()
    (package / "dist" / "index.js").chmod(0o666)

    assert world.refuses()


def test_the_bundle_is_named_at_the_pinned_version_only(world: World) -> None:
    package = world.node_and_pi_on_path()
    assert world.locate().sdk_bundle is None

    (package / "dist" / "bundle" / "index.js").write_text("")
    assert world.locate().sdk_bundle == package / "dist" / "bundle" / "index.js"

    sdk(package, "1.6.1")
    assert world.locate().sdk_bundle is None


def test_the_compile_cache_is_private_and_belongs_to_one_pair_of_versions(world: World) -> None:
    installed(world.place, world.node("recorded"))
    cache = world.locate().compile_cache
    assert cache is not None
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert cache.is_relative_to(world.place.root)

    installed(world.place, world.node("recorded"), node_version="v24.20.0")
    assert world.locate().compile_cache not in {cache, None}


def test_a_node_of_unknown_version_has_a_compile_cache_of_its_own(world: World) -> None:
    world.node_and_pi_on_path()
    first = world.locate().compile_cache
    program(world.root / "bin" / "node", "echo v24.20.0 # another build")

    assert first is not None
    assert world.locate().compile_cache not in {first, None}


def test_a_compile_cache_that_others_may_enter_is_not_used(world: World) -> None:
    installed(world.place, world.node("recorded"))
    cache = world.locate().compile_cache
    assert cache is not None
    cache.chmod(0o755)

    assert world.locate().compile_cache is None


def test_without_a_usable_home_an_install_in_the_environment_is_enough(world: World) -> None:
    installed(world.place, world.node("recorded"))

    for home in ("", "relative", "/"):
        assert world.locate(None, HOME=home).node_source == "installed"
