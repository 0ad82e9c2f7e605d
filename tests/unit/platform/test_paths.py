"""Where a person's files are, also when the environment says nonsense."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from pi_session_mcp.platform.paths import fixed_data_directory, home_directory, is_below


def test_home_is_what_the_environment_says_when_that_is_an_absolute_path() -> None:
    assert home_directory({"HOME": "/somewhere/else"}) == Path("/somewhere/else")


@pytest.mark.parametrize("value", [None, "", ".", "relative", "~", "/", "//", "/..", "/a/.."])
def test_a_home_that_would_give_relative_or_root_paths_is_not_believed(value: str | None) -> None:
    environ = {} if value is None else {"HOME": value}

    assert home_directory(environ) == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_the_data_directory_is_fixed_on_each_platform() -> None:
    home = Path("/home/someone")

    assert fixed_data_directory(home, platform="linux") == home / ".local/share/pi-session-mcp"
    assert fixed_data_directory(home, platform="darwin") == home / "Library/Application Support/pi-session-mcp"


def test_a_directory_is_below_itself_and_its_parents_but_not_below_a_longer_name(tmp_path: Path) -> None:
    inner = tmp_path / "work" / "inner"
    inner.mkdir(parents=True)

    assert is_below(inner, tmp_path / "work")
    assert is_below(inner, inner)
    assert not is_below(tmp_path / "work-2", tmp_path / "work")
    assert not is_below(tmp_path, inner)


def test_links_are_followed_on_both_sides(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "inner").mkdir(parents=True)
    outside.mkdir()
    (work / "leads-out").symlink_to(outside)
    (outside / "leads-in").symlink_to(work / "inner")
    (tmp_path / "other-name").symlink_to(work)

    assert is_below(work / "leads-out", work), "who can write the link decides where it leads"
    assert is_below(outside / "leads-in", work)
    assert is_below(work / "inner", tmp_path / "other-name")
    assert is_below(work / "inner" / ".." / "inner", work)
