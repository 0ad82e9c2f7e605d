"""The real npm, the real registry, the real lock file: into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.runtime.install import Installer, install
from pi_session_mcp.runtime.locate import Runtime, locate
from pi_session_mcp.runtime.record import shipped_lock_hash
from pi_session_mcp.runtime.result import InstallCode, InstallResult, Phase, Progress
from pi_session_mcp.runtime.status import status
from tests.support.environment import ensure_installed
from tests.support.large import large_directory
from tests.support.runtimes import Wishes, place_in_environment
from tests.support.trees import kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = """
import os, sys
from pathlib import Path
from pi_session_mcp.runtime.install import Installer, install
def told(progress):
    sys.stdout.write(f"{progress.phase} {progress.done}\\n")
    sys.stdout.flush()
install(Installer(environ=os.environ, prefix=Path(sys.argv[1]), watch=told))
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with large_directory(tmp_path_factory, "runtime") as directory:
        yield directory / "environment"


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The real environment, since it may say how the registry is reached, but for the home directory."""
    with large_directory(tmp_path_factory, "home") as home:
        yield {**os.environ, "HOME": str(home), "NODE_OPTIONS": "--require /nonexistent"}


@pytest.fixture(scope="module")
def killed(prefix: Path, environ: dict[str, str]) -> Iterator[list[psutil.Process]]:
    """What was running below an install when it was killed in the middle of fetching."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(prefix)], env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == f"{Phase.FETCHING} 20\n":
                break
        below = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    yield below
    kill_all(below)


@pytest.fixture(scope="module")
def progress() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def result(
    killed: list[psutil.Process], prefix: Path, environ: dict[str, str], progress: list[Progress]
) -> InstallResult:
    """The end of the install that came after the killed one."""
    assert killed
    return install(Installer(environ=environ, prefix=prefix, watch=progress.append))


def found(prefix: Path, environ: dict[str, str]) -> Runtime:
    return locate(Wishes(), environ, prefix.parent / "project", prefix=prefix)


@pytest.mark.registry
def test_an_install_that_is_killed_while_it_fetches_is_gone_and_installed_nothing(
    killed: list[psutil.Process], prefix: Path
) -> None:
    assert len(killed) >= 2, "a keeper, and npm below it"
    assert survivors(killed) == []
    place = place_in_environment(prefix)
    assert not place.record_file.exists()
    assert not place.install(shipped_lock_hash()).exists()


@pytest.mark.registry
def test_the_next_install_is_complete_and_leaves_nothing_else(
    result: InstallResult, prefix: Path, environ: dict[str, str], progress: list[Progress]
) -> None:
    assert (result.code, result.sdk_version) == (InstallCode.INSTALLED, "1.6.0")
    assert os.listdir(place_in_environment(prefix).installs) == [shipped_lock_hash()]
    assert sum(seen.phase is Phase.FETCHING for seen in progress) > 100
    state = status(Wishes(), environ, prefix, prefix=prefix)
    assert (state.code, state.exit_status) == ("ok", ExitStatus.OK)


@pytest.mark.registry
def test_the_installed_sdk_and_its_bundle_export_the_same(
    result: InstallResult, prefix: Path, environ: dict[str, str]
) -> None:
    runtime = found(prefix, environ)
    assert runtime.sdk_bundle is not None
    script = (
        "const [a, b] = await Promise.all(process.argv.slice(1).map((path) => import(path)));"
        "const names = (module) => Object.keys(module).sort().join();"
        "if (!('createAgentSession' in a) || names(a) !== names(b)) process.exit(1);"
    )

    subprocess.run(
        [runtime.node, "--input-type=module", "-e", script, "--", runtime.sdk_entry, runtime.sdk_bundle],
        check=True,
        env={"PATH": os.defpath},
        timeout=60,
    )


@pytest.mark.registry
def test_the_installed_ripgrep_searches_without_any_other_tool(
    result: InstallResult, prefix: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    tools = found(prefix, environ).tools
    assert tools is not None
    (tmp_path / "file").write_text("needle\n")

    said = subprocess.run([tools / "rg", "-l", "needle"], cwd=tmp_path, stdout=subprocess.PIPE, check=True, env={})

    assert said.stdout == b"file\n"


@pytest.mark.registry
def test_installing_again_changes_nothing(result: InstallResult, prefix: Path, environ: dict[str, str]) -> None:
    before = place_in_environment(prefix).record_file.stat()

    again = install(Installer(environ=environ | {"NPM_CONFIG_REGISTRY": "http://127.0.0.1:9/"}, prefix=prefix))

    assert again.code is InstallCode.ALREADY_INSTALLED
    assert place_in_environment(prefix).record_file.stat().st_ino == before.st_ino


def test_without_a_network_the_end_has_a_code_and_nothing_is_left(environ: dict[str, str], tmp_path: Path) -> None:
    # Port 9 (discard) refuses at once; a cache of its own, or there would be nothing to fetch.
    nowhere = {"NPM_CONFIG_REGISTRY": "http://127.0.0.1:9/", "NPM_CONFIG_CACHE": str(tmp_path / "cache")}

    ended = install(Installer(environ=environ | nowhere, prefix=tmp_path / "environment"))

    assert ended.code is InstallCode.REGISTRY_UNREACHABLE
    assert os.listdir(place_in_environment(tmp_path / "environment").installs) == []


@pytest.mark.registry
def test_the_operators_npm_settings_and_home_are_left_as_they_were(
    result: InstallResult, environ: dict[str, str]
) -> None:
    assert {path.name for path in Path(environ["HOME"]).iterdir()} <= {".npm"}, "npm's cache, nothing else"


def test_the_environment_of_the_tests_has_its_runtime() -> None:
    assert ensure_installed().sdk_source == "installed"
