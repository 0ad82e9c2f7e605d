"""Which directory shows a client's user scope and nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.setup.clients.base import CommandFailed, CommandFailure, Surroundings
from pi_session_mcp.setup.clients.codex import Codex
from pi_session_mcp.setup.clients.neutral import MARKS, is_neutral
from pi_session_mcp.setup.registration import registration_of
from pi_session_mcp.setup.targets import Target
from tests.support.plain_runner import PlainRunner
from tests.support.stub_client import install_stub_clients

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "state").mkdir(parents=True)
    return home


@pytest.fixture
def directory(home: Path) -> Path:
    directory = home / "state" / "neutral"
    directory.mkdir(mode=0o700)
    return directory


def test_an_empty_directory_of_ours_is_neutral(home: Path, directory: Path) -> None:
    assert is_neutral(directory, {"HOME": str(home)})


@pytest.mark.parametrize("mode", [0o500, 0o701, 0o710, 0o750, 0o755, 0o777, 0o1700, 0o2700])
def test_another_mode_is_not_neutral(home: Path, directory: Path, mode: int) -> None:
    directory.chmod(mode)

    assert not is_neutral(directory, {"HOME": str(home)})


@pytest.mark.parametrize("name", [*MARKS, "x"])
def test_a_directory_with_anything_in_it_is_not_neutral(home: Path, directory: Path, name: str) -> None:
    (directory / name).mkdir()

    assert not is_neutral(directory, {"HOME": str(home)})


@pytest.mark.parametrize("mark", MARKS)
def test_a_directory_below_a_project_is_not_neutral(home: Path, directory: Path, mark: str) -> None:
    for parent in directory.parents[:1]:
        (parent / mark).symlink_to("/does/not/exist")  # a dangling link may lead somewhere a moment later
        assert not is_neutral(directory, {"HOME": str(home)})


def test_a_project_above_a_linked_directory_counts(home: Path, directory: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home / "state")
    (home / ".git").mkdir()

    assert not is_neutral(link / "neutral", {"HOME": str(tmp_path / "nobody")})


def test_the_home_of_codex_is_no_project(home: Path, directory: Path, tmp_path: Path) -> None:
    (home / ".codex").mkdir()
    link = tmp_path / "link"
    link.symlink_to(home)

    assert is_neutral(directory, {"HOME": str(home)})
    assert is_neutral(directory, {"HOME": str(link)})
    assert is_neutral(directory, {"HOME": "/nobody", "CODEX_HOME": str(home / ".codex")})
    assert not is_neutral(directory, {"HOME": "/nobody"})
    assert not is_neutral(directory, {"HOME": "", "CODEX_HOME": ""})


def test_what_is_no_directory_is_not_neutral(home: Path, directory: Path) -> None:
    link, file = home / "link", home / "file"
    link.symlink_to(directory)
    file.touch(mode=0o700)

    for path in (link, file, home / "absent"):
        assert not is_neutral(path, {"HOME": str(home)})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_somebody_else_is_not_neutral(home: Path, directory: Path) -> None:
    os.chown(directory, 65534, 65534)

    assert not is_neutral(directory, {"HOME": str(home)})


@pytest.mark.anyio
async def test_no_client_is_asked_from_a_directory_that_stopped_being_neutral(home: Path, directory: Path) -> None:
    stubs, run = install_stub_clients(home, home / "bin"), PlainRunner()
    client = Codex(Surroundings(stubs.environ, home, directory))
    target, intent = Target("codex", "user"), registration_of("/p", "/c")
    (directory / ".mcp.json").touch()

    for call in (client.inspect(run, target, intent), client.add(run, target, intent), client.remove(run, target)):
        with pytest.raises(CommandFailed) as failed:
            await call
        assert failed.value.kind is CommandFailure.NOT_NEUTRAL
    assert stubs.calls() == []
