"""What binds a registration to an installation."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pi_session_mcp.setup.release import Installation, _without_version, find_installation, require_lasting
from pi_session_mcp.setup.result import SetupCode, Stopped


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    package = tmp_path / "lib" / "package"
    (package / "host" / "js").mkdir(parents=True)
    (package / "code.py").write_text("pass\n")
    (package / "host" / "js" / "host.mjs").write_text("export {}\n")
    (package / "package-lock.json").write_text("{}\n")
    executable = tmp_path / "bin" / "pi-session-mcp"
    executable.parent.mkdir()
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    return Installation(executable, package, "1.0", ("console_scripts pi-session-mcp = x:y",), is_editable=False)


def test_the_same_files_have_the_same_release_wherever_they_are(installation: Installation, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    before = installation.release()
    installation.package.rename(moved)
    assert replace(installation, package=moved).release() == before


@pytest.mark.parametrize("name", ["code.py", "host/js/host.mjs", "package-lock.json"])
def test_every_file_counts(installation: Installation, name: str) -> None:
    before = installation.release()
    (installation.package / name).write_text("changed\n")
    assert installation.release() != before


def test_a_file_that_comes_goes_or_moves_counts(installation: Installation) -> None:
    releases = {installation.release()}
    (installation.package / "more.py").touch()
    releases.add(installation.release())
    (installation.package / "more.py").rename(installation.package / "moved.py")
    releases.add(installation.release())
    assert len(releases) == 3


def test_the_executable_the_version_the_entry_points_and_the_kind_count(installation: Installation) -> None:
    releases = {
        installation.release(),
        replace(installation, version="1.1").release(),
        replace(installation, entry_points=()).release(),
        replace(installation, is_editable=True).release(),
    }
    installation.executable.write_text("#!/bin/sh\n# other\n")
    assert len(releases | {installation.release()}) == 5


def test_an_editable_installation_is_marked_as_one(installation: Installation) -> None:
    assert replace(installation, is_editable=True).release().startswith("editable:")


def test_caches_do_not_count(installation: Installation) -> None:
    before = installation.release()
    (installation.package / "host" / "__pycache__").mkdir()
    (installation.package / "host" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert installation.release() == before


@pytest.mark.parametrize("kind", ["link to a file", "link to a directory", "dangling link", "fifo"])
def test_what_is_no_plain_file_is_refused(installation: Installation, kind: str) -> None:
    place = installation.package / "host" / "strange"
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to({"link to a file": "../code.py", "link to a directory": "js"}.get(kind, "nowhere"))
    with pytest.raises(Stopped) as stopped:
        installation.release()
    assert stopped.value.code is SetupCode.RELEASE_UNAVAILABLE


def test_an_executable_that_is_gone_is_refused(installation: Installation) -> None:
    installation.executable.unlink()
    with pytest.raises(Stopped):
        installation.release()


def test_this_installation_is_found_with_a_command_that_runs() -> None:
    found = find_installation(os.environ)
    assert found.executable.is_absolute()
    assert os.access(found.executable, os.X_OK)
    assert (found.package / "setup" / "release.py").exists()


VANISHING = [
    "/tmp/x",
    "/var/tmp/x",
    "{home}/.cache/uv/archive-v0/x",
    "{home}/.cache/pipx/x",
    "{home}/.local/pipx/.cache/x",
]


@pytest.mark.parametrize("place", [*VANISHING, "{uv}/x", "{tmp}/x", "{pipx}/.cache/x"])
def test_an_installation_that_something_tidies_away_is_refused(installation: Installation, place: str) -> None:
    environ = {"HOME": "/home/u", "UV_CACHE_DIR": "/uv", "TMPDIR": "/scratch", "PIPX_HOME": "/pipx"}
    path = Path(place.format(home="/home/u", uv="/uv", tmp="/scratch", pipx="/pipx"))
    with pytest.raises(Stopped) as stopped:
        require_lasting(replace(installation, executable=path / "pi-session-mcp", package=Path("/opt/x")), environ)
    assert stopped.value.code is SetupCode.INSTALLATION_EPHEMERAL


@pytest.mark.parametrize("place", ["/home/u/.local/share/uv/tools/x", "/home/u/.local/share/pipx/venvs/x", "/opt/x"])
def test_an_installation_that_stays_is_accepted(installation: Installation, place: str) -> None:
    staying = replace(installation, executable=Path(place, "bin"), package=Path(place, "lib"))
    require_lasting(staying, {"HOME": "/home/u"})


def test_a_stable_link_is_preferred_to_a_directory_named_after_a_version(tmp_path: Path) -> None:
    cellar = tmp_path / "Cellar" / "pi-session-mcp" / "1.2.3" / "bin"
    cellar.mkdir(parents=True)
    (cellar / "pi-session-mcp").touch()
    stable = tmp_path / "stable"
    stable.mkdir()
    other = tmp_path / "other"
    other.mkdir()
    (other / "pi-session-mcp").touch()
    environ = {"PATH": f"relative:{other}:{cellar}:{stable}"}
    assert _without_version(cellar / "pi-session-mcp", environ) == cellar / "pi-session-mcp"
    (stable / "pi-session-mcp").symlink_to(cellar / "pi-session-mcp")
    assert _without_version(cellar / "pi-session-mcp", environ) == stable / "pi-session-mcp"
    assert _without_version(other / "pi-session-mcp", environ) == other / "pi-session-mcp"
