"""Which directory shows a client's user scope and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.setup.clients.base import AskedFrom, CommandFailed, CommandFailure
from pi_session_mcp.setup.clients.codex import Codex
from pi_session_mcp.setup.clients.neutral import (
    MARKS,
    is_as_made,
    is_neutral,
    make_top_of_repository,
    neutral_directory,
)
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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Stands for the root directory of the machine."""
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.mark.parametrize("as_file", [False, True])
@pytest.mark.parametrize("mark", [".git", ".codex"])
def test_the_top_of_a_repository_is_below_no_other(home: Path, directory: Path, mark: str, *, as_file: bool) -> None:
    (home / mark).write_text("gitdir: elsewhere\n") if as_file else (home / mark).mkdir()
    (home / "state" / mark).mkdir()
    assert not is_neutral(directory, {"HOME": "/nobody"})

    make_top_of_repository(directory)

    assert is_neutral(directory, {"HOME": "/nobody"})
    assert neutral_directory(directory, {"HOME": "/nobody"}) == directory


def test_git_itself_takes_it_for_a_top(home: Path, directory: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("this machine has no git")
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    subprocess.run([git, "init", "--quiet", str(home)], env=environ, check=True)
    make_top_of_repository(directory)

    words = [git, "rev-parse", "--show-toplevel"]
    told = subprocess.run(words, cwd=directory, env=environ, check=True, capture_output=True, text=True)

    assert told.stdout.strip() == str(directory.resolve())


def test_registrations_of_a_project_above_are_not_seen_from_the_root(home: Path, directory: Path, root: Path) -> None:
    make_top_of_repository(directory)
    (home / ".mcp.json").write_text("{}")

    assert neutral_directory(directory, {"HOME": str(home)}, root) == root


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_in_the_root_is_named_where_no_other_place_is_left(
    home: Path, directory: Path, root: Path, mark: str
) -> None:
    make_top_of_repository(directory)
    (root / mark).mkdir()
    assert neutral_directory(directory, {"HOME": str(home)}, root) == directory
    (home / ".mcp.json").write_text("{}")

    with pytest.raises(CommandFailed) as failed:
        neutral_directory(directory, {"HOME": str(home)}, root)
    assert (failed.value.kind, failed.value.mark) == (CommandFailure.NOT_NEUTRAL, mark)


def test_before_anything_was_made_the_root_serves(home: Path, root: Path) -> None:
    assert neutral_directory(home / "state" / "neutral", {"HOME": str(home)}, root) == root


@pytest.mark.parametrize("is_there", [False, True])
def test_what_will_be_made_is_judged_as_if_it_were(home: Path, root: Path, *, is_there: bool) -> None:
    directory, environ = home / "state" / "neutral", {"HOME": str(home)}
    if is_there:
        directory.mkdir(mode=0o700)
    for place in (home, root):
        (place / ".git").mkdir()
    with pytest.raises(CommandFailed):
        neutral_directory(directory, environ, root)

    assert neutral_directory(directory, environ, root, once_made=True) == directory

    (home / ".mcp.json").touch()
    with pytest.raises(CommandFailed):
        neutral_directory(directory, environ, root, once_made=True)


@pytest.mark.parametrize("left", [(), (".git",), (".git", ".git/objects"), (".git", ".git/refs", ".git/objects")])
def test_what_a_killed_run_left_of_it_is_finished(
    home: Path, directory: Path, root: Path, left: tuple[str, ...]
) -> None:
    for name in left:
        (directory / name).mkdir(mode=0o700)
    if len(left) == 3:
        (directory / ".git" / "HEAD").touch(mode=0o600)
    assert neutral_directory(directory, {"HOME": str(home)}, root) == (root if left else directory)

    make_top_of_repository(directory)

    assert is_as_made(directory)
    assert os.path.lexists(directory / ".git")


@pytest.mark.parametrize("name", ["x", ".mcp.json", ".codex", ".git/commondir"])
def test_what_else_is_put_there_is_neither_looked_from_nor_repaired(
    home: Path, directory: Path, root: Path, name: str
) -> None:
    make_top_of_repository(directory)
    (directory / name).write_text("x")
    before = sorted(directory.rglob("*"))

    make_top_of_repository(directory)

    assert sorted(directory.rglob("*")) == before
    with pytest.raises(CommandFailed) as failed:
        neutral_directory(directory, {"HOME": str(home)}, root)
    assert failed.value.mark is None


def test_nothing_is_written_through_a_link_in_its_place(home: Path, directory: Path) -> None:
    (home / "elsewhere").mkdir(mode=0o700)
    (directory / ".git").symlink_to(home / "elsewhere")

    make_top_of_repository(directory)

    assert list((home / "elsewhere").iterdir()) == []
    assert not is_as_made(directory)


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
    client = Codex(AskedFrom(stubs.environ, home, directory))
    target, intent = Target("codex", "user"), registration_of("/p", "/c")
    (directory / ".mcp.json").touch()

    for call in (client.inspect(run, target, intent), client.add(run, target, intent), client.remove(run, target)):
        with pytest.raises(CommandFailed) as failed:
            await call
        assert failed.value.kind is CommandFailure.NOT_NEUTRAL
    assert stubs.calls() == []
