"""The state of the runtime: versions and names, never a path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.runtime.problem import CONFIGURED_NODE, CONFIGURED_SDK, REMEDIATIONS, RuntimeCode
from pi_session_mcp.runtime.record import shipped_lock_hash
from pi_session_mcp.runtime.status import Status, status_async
from tests.support.runtimes import LOCK, Override, Wishes, installed, node_wheel, place_in_environment, program, sdk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


async def status_in(root: Path, wishes: Wishes | None = None) -> Status:
    environ = {"HOME": str(root / "home"), "PATH": "/usr/bin:/bin"}
    bare = {**environ, "PATH": str(root / "bin")}
    return await status_async(wishes or Wishes(), bare, root / "project", root / "environment")


def both(root: Path, script: str = "echo v24.19.0", version: str = "1.6.0") -> Wishes:
    return Wishes(runtime=Override(program(root / "opt" / "node", script), sdk(root / "opt" / "sdk", version)))


def everything_below(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


async def test_a_sound_runtime_is_told_by_versions_and_sources(tmp_path: Path) -> None:
    found = await status_in(tmp_path, both(tmp_path))

    assert found.members() == {
        "status": "ok",
        "node": {"version": "24.19.0", "source": "configuration", "status": "ok"},
        "sdk": {"version": "1.6.0", "source": "configuration", "status": "ok"},
    }
    assert (found.ok, found.exit_status) == (True, ExitStatus.OK)


async def test_an_install_of_another_lock_file_works_and_is_called_outdated(tmp_path: Path) -> None:
    assert shipped_lock_hash() != LOCK
    installed(place_in_environment(tmp_path / "environment"), program(tmp_path / "opt" / "node"))

    found = await status_in(tmp_path)

    assert (found.code, found.ok, found.exit_status) == (RuntimeCode.OUTDATED, True, ExitStatus.OK)
    assert found.members()["remediation"] == REMEDIATIONS[RuntimeCode.OUTDATED]
    assert found.node.source == "installed"


async def test_nothing_there_is_told_with_a_way_out(tmp_path: Path) -> None:
    found = await status_in(tmp_path)

    assert (found.code, found.ok, found.exit_status) == (RuntimeCode.NODE_MISSING, False, ExitStatus.CHECK_FAILED)
    assert found.sdk.code is RuntimeCode.PI_RUNTIME_MISSING
    assert found.remediation is not None


@pytest.mark.parametrize(
    ("script", "code", "version"),
    [
        ("echo v20.11.0", RuntimeCode.NODE_VERSION_UNSUPPORTED, "20.11.0"),
        ("echo v22.18.99", RuntimeCode.NODE_VERSION_UNSUPPORTED, "22.18.99"),
        ("echo v22.19.0", RuntimeCode.OK, "22.19.0"),
        ("echo /secret/place v22.19.0", RuntimeCode.NODE_VERSION_UNSUPPORTED, None),
        ("yes", RuntimeCode.NODE_MISSING, None),
        ("exit 1", RuntimeCode.NODE_MISSING, None),
        ("echo v24.19.0; exit 3", RuntimeCode.NODE_MISSING, None),
        ("kill -9 $$", RuntimeCode.NODE_MISSING, None),
        ("echo broken >&2; exec /nonexistent", RuntimeCode.NODE_MISSING, None),
    ],
)
async def test_node_is_believed_only_when_it_says_a_release_and_ends_well(
    tmp_path: Path, script: str, code: RuntimeCode, version: str | None
) -> None:
    found = await status_in(tmp_path, both(tmp_path, script))

    assert found.node.code is code
    assert found.node.version == version


@pytest.mark.parametrize(("version", "told"), [("1.5.1", "1.5.1"), ("1.7.0", "1.7.0"), ("1.7.0-/secret", None)])
async def test_an_untested_sdk_is_told_with_the_version_that_was_found(
    tmp_path: Path, version: str, told: str | None
) -> None:
    found = await status_in(tmp_path, both(tmp_path, version=version))

    assert (found.code, found.sdk.version) == (RuntimeCode.PI_VERSION_UNSUPPORTED, told)
    assert found.exit_status is ExitStatus.CHECK_FAILED


async def test_a_record_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    place = place_in_environment(tmp_path / "environment")
    installed(place, program(tmp_path / "opt" / "node"))
    place.record_file.write_text("{}")

    assert (await status_in(tmp_path)).code is RuntimeCode.PI_RUNTIME_MISSING


@pytest.mark.parametrize(
    ("wheel", "npm", "told"),
    [
        (None, True, RuntimeCode.NODE_MISSING),
        ("echo v24.19.0", True, RuntimeCode.PI_RUNTIME_MISSING),
        ("echo v24.19.0", False, RuntimeCode.NODE_MISSING),
        ("echo v22.18.0", True, RuntimeCode.NODE_MISSING),
        ("exit 1", True, RuntimeCode.NODE_MISSING),
    ],
)
async def test_a_node_that_is_at_hand_is_not_told_to_be_installed(
    tmp_path: Path, *, wheel: str | None, npm: bool, told: RuntimeCode
) -> None:
    if wheel is not None:
        node_wheel(tmp_path / "environment", wheel, npm=npm)

    found = await status_in(tmp_path)

    assert (found.code, found.remediation) == (RuntimeCode.NODE_MISSING, REMEDIATIONS[told])


@pytest.mark.parametrize(
    ("script", "version", "way"),
    [
        ("exit 1", "1.6.0", CONFIGURED_NODE),
        ("echo v20.11.0", "1.6.0", CONFIGURED_NODE),
        ("echo v24.19.0", "1.4.0", CONFIGURED_SDK),
    ],
)
async def test_what_the_configuration_chose_is_not_mended_by_an_install(
    tmp_path: Path, script: str, version: str, way: str
) -> None:
    installed(place_in_environment(tmp_path / "environment"), program(tmp_path / "opt" / "node-of-install"))

    assert (await status_in(tmp_path, both(tmp_path, script, version))).remediation == way


async def test_no_path_is_ever_told(tmp_path: Path) -> None:
    for wishes in (None, both(tmp_path), both(tmp_path, f"echo {tmp_path}"), both(tmp_path, version=str(tmp_path))):
        said = json.dumps((await status_in(tmp_path, wishes)).members())
        assert str(tmp_path) not in said
        assert "/" not in said


async def test_looking_writes_nothing(tmp_path: Path) -> None:
    wishes = both(tmp_path)
    before = everything_below(tmp_path)

    await status_in(tmp_path, wishes)

    assert everything_below(tmp_path) == before


def test_every_problem_has_a_way_out() -> None:
    assert set(REMEDIATIONS) == set(RuntimeCode)
    assert [code for code, said in REMEDIATIONS.items() if said is None] == [RuntimeCode.OK]
